-- The distinct words of messages, in blocks of neighbouring messages of a talk: see core.talks.search.

CREATE TABLE search_blocks (
    talk_id TEXT NOT NULL,
    first BIGINT NOT NULL,           -- numbers of its first and last message
    last BIGINT NOT NULL,
    chars BIGINT NOT NULL,           -- length of their texts
    words TEXT NOT NULL,             -- each between two spaces
    PRIMARY KEY (talk_id, first)
)
WITHOUT ROWID -- sqlite
;
