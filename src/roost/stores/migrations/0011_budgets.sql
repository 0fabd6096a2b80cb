-- What has come of an origin (a task, a message, an event, a tick), of those that have spent a good part of a budget.

CREATE TABLE budgets (
    root TEXT NOT NULL PRIMARY KEY,
    runs BIGINT NOT NULL,
    messages BIGINT NOT NULL,
    meetings BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    touched DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;
