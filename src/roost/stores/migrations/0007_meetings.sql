-- Meetings: each participant keeps a log of its own, and a row that says where it stands.

-- Who takes part is an address in full: agent:ann/d or user:ann.
CREATE TABLE meetings (
    participant TEXT NOT NULL,
    meeting_id TEXT NOT NULL,
    user_id TEXT NOT NULL,               -- whose participant it is
    creator TEXT NOT NULL,
    topic TEXT NOT NULL,
    phase TEXT NOT NULL,                 -- calling, running, failed, ended
    status TEXT NOT NULL,                -- the participant's own: invited, in, declined, left, kicked, or '' if unknown
    called DOUBLE PRECISION NOT NULL,
    over DOUBLE PRECISION,
    contents TEXT NOT NULL,              -- stands for the set of entries in the log
    entries BIGINT NOT NULL,             -- how many there are; grows with each
    heard TEXT NOT NULL,                 -- what the brain was told: how many of each author's, as JSON
    asked TEXT NOT NULL,                 -- and what it was asked for, as JSON
    turn TEXT NOT NULL,                  -- the envelope of the turn that is to come or under way, or ''
    turns BIGINT NOT NULL,
    timer DOUBLE PRECISION,              -- when it is looked at of itself
    pace DOUBLE PRECISION NOT NULL,      -- after how many seconds without news the others are asked
    hops BIGINT NOT NULL,
    root TEXT NOT NULL,
    key TEXT,                            -- with which it was called
    minutes TEXT,                        -- what is left of it when its log is gone
    PRIMARY KEY (participant, meeting_id)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX meetings_by_user ON meetings (user_id, meeting_id, participant);

CREATE UNIQUE INDEX meetings_by_key ON meetings (participant, key) WHERE key IS NOT NULL;

CREATE TABLE meeting_log (
    participant TEXT NOT NULL,
    meeting_id TEXT NOT NULL,
    author TEXT NOT NULL,
    number BIGINT NOT NULL,              -- the author's own
    entry TEXT NOT NULL,
    key TEXT,                            -- with which its author wrote it
    PRIMARY KEY (participant, meeting_id, author, number)
)
WITHOUT ROWID -- sqlite
;

CREATE UNIQUE INDEX meeting_log_by_key ON meeting_log (participant, meeting_id, key) WHERE key IS NOT NULL;
