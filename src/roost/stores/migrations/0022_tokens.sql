-- API tokens of users: only a digest of each secret is stored.

CREATE TABLE tokens (
    token_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    digest TEXT NOT NULL UNIQUE,         -- SHA-256 of the secret
    scopes TEXT NOT NULL,                -- separated by spaces
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION             -- NULL: never
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX tokens_by_user ON tokens (user_id, token_id);
