-- No row that all writers change: each writer adds up tokens in rows of its own, and talks and agents are counted.

CREATE TABLE new_spending (
    day TEXT NOT NULL,
    profile TEXT NOT NULL,
    writer BIGINT NOT NULL,          -- of several that write at the same time, each has another number
    tokens BIGINT NOT NULL,
    PRIMARY KEY (day, profile, writer)
)
WITHOUT ROWID -- sqlite
;

INSERT INTO new_spending (day, profile, writer, tokens) SELECT day, profile, 0, tokens FROM spending;

DROP TABLE spending;

ALTER TABLE new_spending RENAME TO spending;

ALTER TABLE users DROP COLUMN talks;

ALTER TABLE users DROP COLUMN agents;
