-- Accounts of users who sign in. Secrets are stored as hashes: of passwords by argon2, of invitations by SHA-256.

CREATE TABLE accounts (
    user_id TEXT PRIMARY KEY,
    role TEXT NOT NULL,
    password TEXT,                       -- NULL: none was set yet, or another provider signs the user in
    epoch BIGINT NOT NULL,               -- grows when all sessions end
    created DOUBLE PRECISION NOT NULL,
    disabled DOUBLE PRECISION            -- NULL: it is enabled
)
WITHOUT ROWID -- sqlite
;

CREATE TABLE invitations (
    user_id TEXT PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    expires DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;

-- Users as an OIDC provider knows them.
CREATE TABLE identities (
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    user_id TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (issuer, subject)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX identities_by_user ON identities (user_id);

CREATE TABLE audit (
    entry_id TEXT PRIMARY KEY,
    at DOUBLE PRECISION NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    address TEXT NOT NULL,
    detail TEXT NOT NULL
)
WITHOUT ROWID -- sqlite
;

-- Users whose data is being deleted; continued after a restart.
CREATE TABLE deletions (
    user_id TEXT PRIMARY KEY,
    pseudonym TEXT NOT NULL,             -- replaces the user in what is kept
    actor TEXT NOT NULL,
    address TEXT NOT NULL,
    started DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;
