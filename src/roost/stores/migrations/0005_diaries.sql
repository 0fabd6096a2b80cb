-- What brains note for themselves: of each turn, in rows that are never changed, and values by name.

CREATE TABLE diary (
    owner TEXT NOT NULL,                 -- a talk's id, or an agent's address
    lane TEXT NOT NULL,                  -- of an agent; '' of a talk
    run_id TEXT NOT NULL,
    content TEXT NOT NULL,
    seqs TEXT NOT NULL,                  -- the messages that the turn took in
    PRIMARY KEY (owner, lane, run_id)
)
WITHOUT ROWID -- sqlite
;

-- Of the owner as above; or of 'user' and 'app', with the lane app/user and app.
CREATE TABLE diary_values (
    owner TEXT NOT NULL,
    lane TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, lane, name)
)
WITHOUT ROWID -- sqlite
;
