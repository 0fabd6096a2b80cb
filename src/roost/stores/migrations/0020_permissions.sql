-- Standing permissions: tools that an agent, or a profile in talks without an agent, may call without asking its owner.

CREATE TABLE permissions (
    user_id TEXT NOT NULL,               -- who has granted it
    agent_id TEXT NOT NULL,              -- '' for a profile
    profile TEXT NOT NULL,               -- '' for an agent
    tool TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (user_id, agent_id, profile, tool)
)
WITHOUT ROWID -- sqlite
;

ALTER TABLE approvals ADD COLUMN profile TEXT NOT NULL DEFAULT '';  -- of the run that asks

UPDATE approvals SET profile = COALESCE((SELECT t.profile FROM talks t WHERE t.talk_id = approvals.talk_id), '');

ALTER TABLE approvals ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;     -- of the newest message in its talk when it was asked, or 0
