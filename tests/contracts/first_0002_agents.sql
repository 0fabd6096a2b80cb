-- Step 2 as it was first used: stores from then lack its later edits (see roost.stores.migrations.repair).

ALTER TABLE users ADD COLUMN agents BIGINT NOT NULL DEFAULT 0;

ALTER TABLE talks ADD COLUMN agent TEXT NOT NULL DEFAULT '';   -- the key of the agent it is with, or ''

-- An agent's key is owner/id. Its state here is where it rests: idle, sleeping or stopped.
CREATE TABLE agents (
    address TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    config TEXT NOT NULL,
    state TEXT NOT NULL,
    paused BIGINT NOT NULL,
    epoch BIGINT NOT NULL,               -- grows when whatever runs may write no more
    memory TEXT,                         -- turn.state
    wake TEXT,                           -- what a sleeper waits for
    wants_load BIGINT NOT NULL,          -- whether that includes the load, which nobody rings for
    woken TEXT,                          -- why it last woke
    errors BIGINT NOT NULL,              -- failures since the last success
    created DOUBLE PRECISION NOT NULL,
    last_active DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX agents_by_user ON agents (user_id, agent_id);

CREATE INDEX agents_by_load ON agents (address) WHERE wants_load > 0;

CREATE TABLE agent_changes (
    address TEXT NOT NULL,
    change_id TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    before TEXT,
    after TEXT NOT NULL,
    cause TEXT NOT NULL,
    asked_by TEXT NOT NULL,
    PRIMARY KEY (address, change_id)
)
WITHOUT ROWID -- sqlite
;

-- Of talks with profiles the address is empty.
ALTER TABLE inbox ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN kind TEXT NOT NULL DEFAULT 'talk';
ALTER TABLE inbox ADD COLUMN priority TEXT NOT NULL DEFAULT 'normal';
ALTER TABLE inbox ADD COLUMN sender TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN body TEXT NOT NULL DEFAULT '';
ALTER TABLE inbox ADD COLUMN created DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN rank DOUBLE PRECISION NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN most_attempts BIGINT NOT NULL DEFAULT 3;
ALTER TABLE inbox ADD COLUMN retry_delay DOUBLE PRECISION NOT NULL DEFAULT 1;
ALTER TABLE inbox ADD COLUMN expires DOUBLE PRECISION;
ALTER TABLE inbox ADD COLUMN hops BIGINT NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN recorded BIGINT NOT NULL DEFAULT 0;
ALTER TABLE inbox ADD COLUMN ask TEXT;

CREATE INDEX inbox_by_address ON inbox (address, rank, envelope_id) WHERE address <> '';

CREATE TABLE tasks (
    task_id TEXT NOT NULL PRIMARY KEY,   -- also its envelope's id
    address TEXT NOT NULL,
    user_id TEXT NOT NULL,               -- whose agent it is
    sender TEXT NOT NULL,
    prompt TEXT NOT NULL,
    priority TEXT NOT NULL,
    status TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    started DOUBLE PRECISION,
    ended DOUBLE PRECISION,
    expires DOUBLE PRECISION,
    result TEXT,
    error TEXT,
    fault TEXT,
    schedule_id TEXT,
    key TEXT
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX tasks_by_agent ON tasks (address, task_id);

CREATE UNIQUE INDEX tasks_by_key ON tasks (address, key) WHERE key IS NOT NULL;

CREATE INDEX tasks_by_schedule ON tasks (schedule_id, status) WHERE schedule_id IS NOT NULL;

-- What is recorded of a try on its way: sent, or done outside. A repeated try uses it and does it not again.
CREATE TABLE steps (
    envelope_id TEXT NOT NULL,
    step BIGINT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    result TEXT,
    done BIGINT NOT NULL,                -- 0: begun, and whether it was done is not known
    created DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (envelope_id, step)
)
WITHOUT ROWID -- sqlite
;

ALTER TABLE runs ADD COLUMN address TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN kind TEXT NOT NULL DEFAULT 'talk';
ALTER TABLE runs ADD COLUMN envelope_id TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN said TEXT;

CREATE INDEX runs_by_agent ON runs (address, run_id) WHERE address <> '';

CREATE TABLE timers (
    address TEXT NOT NULL,
    key TEXT NOT NULL,                   -- wake, mail, retry, or schedule:ID
    due DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (address, key)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX timers_by_due ON timers (due);

CREATE TABLE schedules (
    schedule_id TEXT NOT NULL PRIMARY KEY,
    address TEXT NOT NULL,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    prompt TEXT NOT NULL,
    priority TEXT NOT NULL,
    rule TEXT NOT NULL,
    overlap TEXT NOT NULL,
    missed TEXT NOT NULL,
    catch_up DOUBLE PRECISION NOT NULL,  -- how far back missed ticks are done, in seconds
    paused BIGINT NOT NULL,
    last DOUBLE PRECISION NOT NULL,      -- the tick up to which all are dealt with
    next DOUBLE PRECISION,
    created DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX schedules_by_agent ON schedules (address, schedule_id);

CREATE INDEX schedules_by_user ON schedules (user_id, schedule_id);

CREATE TABLE mail (
    mail_id TEXT NOT NULL PRIMARY KEY,
    thread_id TEXT NOT NULL,
    sender TEXT NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    priority TEXT NOT NULL,
    rank DOUBLE PRECISION NOT NULL,
    status TEXT NOT NULL,                -- unread, read, replied, archived: as the recipient has it
    reply_to TEXT,
    created DOUBLE PRECISION NOT NULL,
    expires DOUBLE PRECISION,
    read_at DOUBLE PRECISION,
    processed DOUBLE PRECISION,
    key TEXT
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX mail_by_recipient ON mail (recipient, status, rank);

CREATE INDEX mail_by_thread ON mail (thread_id, mail_id);

CREATE UNIQUE INDEX mail_by_key ON mail (sender, key) WHERE key IS NOT NULL;

CREATE TABLE events (
    event_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    data TEXT NOT NULL,
    priority TEXT NOT NULL,
    publisher TEXT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    takers BIGINT NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX events_by_user ON events (user_id, event_id);

-- Who hears what: by config, or (awaited) for as long as it sleeps and waits for it.
CREATE TABLE subscriptions (
    user_id TEXT NOT NULL,
    address TEXT NOT NULL,
    pattern TEXT NOT NULL,
    awaited BIGINT NOT NULL,
    fields TEXT NOT NULL,
    PRIMARY KEY (address, awaited, pattern)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX subscriptions_by_user ON subscriptions (user_id);

CREATE TABLE dead_letters (
    letter_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    address TEXT NOT NULL,
    kind TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts BIGINT NOT NULL,
    created DOUBLE PRECISION NOT NULL,
    envelope TEXT NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX dead_letters_by_user ON dead_letters (user_id, letter_id);
