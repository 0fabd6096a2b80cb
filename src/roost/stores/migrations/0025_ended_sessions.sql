-- Sessions that were ended in one browser, until their cookies would have expired. Session ids are stored as digests.

CREATE TABLE ended_sessions (
    digest TEXT PRIMARY KEY,
    until DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;
