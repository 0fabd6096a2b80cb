-- Files that brains save beside a talk or a lane, or for a user: each version is a row that is never changed.

CREATE TABLE artifacts (
    artifact_id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,                 -- a talk's id, an agent's address, or 'user'
    lane TEXT NOT NULL,                  -- of an agent; '' of a talk; app/user of a user
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    content TEXT NOT NULL,
    about TEXT NOT NULL,                 -- what else is known of it, as JSON
    created DOUBLE PRECISION NOT NULL
);

CREATE UNIQUE INDEX artifacts_by_name ON artifacts (owner, lane, name, version);
