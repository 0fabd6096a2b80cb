-- What thinking costs.

ALTER TABLE runs ADD COLUMN model TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN input_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN output_tokens BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN cost DOUBLE PRECISION;     -- in US dollars, where it is known

-- How many tokens each profile has used on each day (of UTC).
CREATE TABLE spending (
    day TEXT NOT NULL,
    profile TEXT NOT NULL,
    tokens BIGINT NOT NULL,
    PRIMARY KEY (day, profile)
)
WITHOUT ROWID -- sqlite
;
