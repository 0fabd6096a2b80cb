-- oldest: 32
-- Figures of the monitor: counts and sums of each user, in buckets of time. Older buckets are wider.

CREATE TABLE figures (
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    width BIGINT NOT NULL,               -- seconds of the bucket: 10, 60 or 900
    start BIGINT NOT NULL,               -- seconds since 1970, a multiple of the width
    label TEXT NOT NULL,
    bin BIGINT NOT NULL,                 -- of a histogram; otherwise 0
    count BIGINT NOT NULL,
    total DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (user_id, name, width, start, label, bin)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX figures_by_age ON figures (width, start);
