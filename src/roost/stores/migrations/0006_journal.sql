-- The journal: each step of a run with what was asked and what came of it, and what persons are asked about.

ALTER TABLE steps ADD COLUMN holder TEXT NOT NULL DEFAULT '';   -- the talk's id, or the agent's key
ALTER TABLE steps ADD COLUMN run_id TEXT NOT NULL DEFAULT '';   -- the run that did it, or is about to
ALTER TABLE steps ADD COLUMN key TEXT NOT NULL DEFAULT '';      -- by what it is found again: see core.steps
ALTER TABLE steps ADD COLUMN outcome TEXT NOT NULL DEFAULT '';
ALTER TABLE steps ADD COLUMN request TEXT;
ALTER TABLE steps ADD COLUMN ended DOUBLE PRECISION;

CREATE INDEX steps_by_holder ON steps (holder) WHERE holder <> '';

ALTER TABLE runs ADD COLUMN given TEXT;                         -- what the turn was given, beside its messages

CREATE TABLE approvals (
    approval_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,               -- who decides
    holder TEXT NOT NULL,                -- the talk's id, or the agent's key
    agent_id TEXT,
    talk_id TEXT,
    envelope_id TEXT NOT NULL,
    step BIGINT NOT NULL,
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,                  -- call: may it be done; unknown: was it done
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    decision TEXT NOT NULL,              -- '': none yet
    decided DOUBLE PRECISION,
    note TEXT                            -- the result that was given, or why it was refused
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX approvals_by_user ON approvals (user_id, approval_id);

CREATE INDEX approvals_by_holder ON approvals (holder);

CREATE INDEX approvals_by_envelope ON approvals (envelope_id, step);
