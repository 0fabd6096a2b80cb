-- Branches share the beginning of another talk. Values of brains are kept as of each answer, so that a branch gets those of its last message.

ALTER TABLE talks ADD COLUMN parent TEXT NOT NULL DEFAULT '';       -- the talk that it was branched or forked from, or ''

ALTER TABLE talks ADD COLUMN parent_seq BIGINT NOT NULL DEFAULT 0;  -- number of the last message that both have

ALTER TABLE talks ADD COLUMN root TEXT NOT NULL DEFAULT '';         -- the first talk of a family of branches, or '' without branches

ALTER TABLE talks ADD COLUMN branch_key TEXT;                       -- idempotency key of the call that created it

CREATE INDEX talks_by_parent ON talks (parent) WHERE parent <> '';

CREATE INDEX talks_by_root ON talks (root, updated, talk_id) WHERE root <> '';

CREATE UNIQUE INDEX talks_by_branch_key ON talks (user_id, branch_key) WHERE branch_key IS NOT NULL;

CREATE TABLE talk_values (
    talk_id TEXT NOT NULL,
    kind TEXT NOT NULL,                  -- 'state': of turn.state; 'context': of the brain's context
    name TEXT NOT NULL,                  -- '' replaces all of turn.state
    seq BIGINT NOT NULL,                 -- number of the newest message when it was written
    value TEXT,                          -- JSON; NULL if it was removed
    PRIMARY KEY (talk_id, kind, name, seq)
)
WITHOUT ROWID -- sqlite
;

INSERT INTO talk_values (talk_id, kind, name, seq, value)
SELECT talk_id, 'state', '', 0, state FROM talks WHERE state IS NOT NULL;

INSERT INTO talk_values (talk_id, kind, name, seq, value)
SELECT v.owner, 'context', v.name, 0, v.value FROM diary_values v JOIN talks t ON t.talk_id = v.owner;
