-- Files in messages, stored in pieces. Branches refer to the same file: it is deleted with the last message that has it.

CREATE TABLE attachments (
    attachment_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    media_type TEXT NOT NULL,
    size BIGINT NOT NULL,                -- in bytes
    sha256 TEXT NOT NULL,
    complete INTEGER NOT NULL,           -- 0 until all its pieces are stored
    created DOUBLE PRECISION NOT NULL
);

CREATE INDEX attachments_by_user ON attachments (user_id);

CREATE TABLE attachment_pieces (
    attachment_id TEXT NOT NULL,
    piece BIGINT NOT NULL,
    data BLOB NOT NULL,                  -- sqlite
    data BYTEA NOT NULL,                 -- postgres
    PRIMARY KEY (attachment_id, piece)
);

CREATE TABLE message_attachments (
    talk_id TEXT NOT NULL,
    seq BIGINT NOT NULL,
    attachment_id TEXT NOT NULL,
    PRIMARY KEY (talk_id, seq, attachment_id)
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX message_attachments_by_id ON message_attachments (attachment_id);

ALTER TABLE messages ADD COLUMN attachments TEXT NOT NULL DEFAULT '';   -- JSON, see core.talks.attachments
