-- oldest: 32
-- Failed tries to sign in, which slow further ones on all nodes. Accounts and addresses are digests.

CREATE TABLE password_guesses (
    digest TEXT PRIMARY KEY,             -- of an account, an address, or both if it has signed in from there
    failures BIGINT NOT NULL,
    latest DOUBLE PRECISION NOT NULL,    -- time of the latest failure
    until DOUBLE PRECISION NOT NULL      -- the row may be removed then
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX password_guesses_until ON password_guesses (until);
