-- Hooks: URLs of this server to which other programs post, and the requests that were accepted.

CREATE TABLE hooks (
    hook_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,         -- SHA-256 of the token in the URL
    secret TEXT,                         -- verifies signatures, so it is stored as it is; NULL: requests need none
    event TEXT,                          -- published by a request, or
    agent TEXT,                          -- gets a task
    task TEXT,                           -- template of the task
    headers TEXT NOT NULL,               -- names of headers that the event has, separated by spaces
    created DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX hooks_by_user ON hooks (user_id, hook_id);

CREATE TABLE hook_requests (
    hook_id TEXT NOT NULL,
    request_id TEXT NOT NULL,            -- chosen by the sender: the same request is accepted once
    user_id TEXT NOT NULL,
    result TEXT NOT NULL,                -- event or task
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (hook_id, request_id)
)
WITHOUT ROWID -- sqlite
;
