-- Nodes: processes that share this database. An agent or a talk belongs to the node that is named in its row.

CREATE TABLE nodes (
    node_id TEXT PRIMARY KEY,            -- new at each start
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    version TEXT NOT NULL,
    profiles TEXT NOT NULL,              -- JSON list of those that can run there
    state TEXT NOT NULL,
    started DOUBLE PRECISION NOT NULL,
    lease DOUBLE PRECISION NOT NULL,     -- its end, by the clock of the database
    awake BIGINT NOT NULL,
    room BIGINT NOT NULL,
    cpu DOUBLE PRECISION,
    clock_error DOUBLE PRECISION NOT NULL
)
WITHOUT ROWID -- sqlite
;

ALTER TABLE agents ADD COLUMN node TEXT NOT NULL DEFAULT '';
ALTER TABLE talks ADD COLUMN node TEXT NOT NULL DEFAULT '';

CREATE INDEX agents_by_node ON agents (node) WHERE node <> '';
CREATE INDEX talks_by_node ON talks (node) WHERE node <> '';
