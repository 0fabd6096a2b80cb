-- oldest: 32
-- Signed codes that were used, as digests: links of the command line, and states of sign-ins at a provider.

CREATE TABLE used_codes (
    digest TEXT PRIMARY KEY,
    until DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;
