-- Talks, their messages, what waits to be answered, and what was done.

CREATE TABLE meta (
    name TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Time is the database's. A test moves it by setting `roost.shift` for its database.
CREATE FUNCTION roost_now() RETURNS double precision LANGUAGE sql VOLATILE AS $$ -- postgres
  SELECT extract(epoch FROM clock_timestamp())::double precision -- postgres
    + COALESCE(NULLIF(current_setting('roost.shift', true), '')::double precision, 0) -- postgres
$$; -- postgres

CREATE TABLE users (
    user_id TEXT NOT NULL PRIMARY KEY,
    talks BIGINT NOT NULL            -- how many there are, so that a bound costs no counting
);

CREATE TABLE talks (
    talk_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    profile TEXT NOT NULL,
    busy TEXT NOT NULL,
    title TEXT NOT NULL,
    options TEXT NOT NULL,
    state TEXT,
    created DOUBLE PRECISION NOT NULL,
    updated DOUBLE PRECISION NOT NULL,   -- when a person last wrote
    last_seq BIGINT NOT NULL,        -- number of its newest message
    revision BIGINT NOT NULL,        -- grows with every visible change
    epoch BIGINT NOT NULL,           -- grows when a run is superseded
    waiting BIGINT NOT NULL,         -- envelopes in its lane
    answer_seq BIGINT NOT NULL       -- the message that is being written, or 0
);

CREATE INDEX talks_by_user ON talks (user_id, updated, talk_id);

CREATE INDEX talks_answering ON talks (talk_id) WHERE answer_seq > 0;

CREATE TABLE messages (
    talk_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    sender TEXT NOT NULL,
    content TEXT NOT NULL,
    status TEXT NOT NULL,
    error TEXT,
    run_id TEXT,
    key TEXT,
    created DOUBLE PRECISION NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (talk_id, seq)
)
WITHOUT ROWID -- sqlite
;

CREATE UNIQUE INDEX messages_by_key ON messages (talk_id, key) WHERE key IS NOT NULL;

CREATE INDEX messages_by_revision ON messages (talk_id, revision);

-- What was said so far of a message that is being written; gone when it is done.
CREATE TABLE parts (
    talk_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    part BIGINT NOT NULL,
    content TEXT NOT NULL,
    PRIMARY KEY (talk_id, seq, part)
)
WITHOUT ROWID -- sqlite
;

CREATE TABLE inbox (
    envelope_id TEXT NOT NULL PRIMARY KEY,
    lane TEXT NOT NULL,
    seq BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    due DOUBLE PRECISION NOT NULL,
    busy TEXT NOT NULL
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX inbox_by_lane ON inbox (lane, seq);

CREATE TABLE runs (
    run_id TEXT NOT NULL PRIMARY KEY,
    talk_id TEXT NOT NULL,
    outcome TEXT NOT NULL,
    seq BIGINT,
    attempts BIGINT NOT NULL,
    started DOUBLE PRECISION NOT NULL,
    first_chunk DOUBLE PRECISION,
    ended DOUBLE PRECISION NOT NULL,
    fault TEXT,
    stop_requested DOUBLE PRECISION,
    stop_acknowledged DOUBLE PRECISION,
    stop_quiesced DOUBLE PRECISION,
    abandoned TEXT
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX runs_by_talk ON runs (talk_id, run_id);
