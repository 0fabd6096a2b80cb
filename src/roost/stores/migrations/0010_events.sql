-- An event may be delivered after it was published: to a turn that asks for sleep while it comes. Its chain goes with it.

ALTER TABLE events ADD COLUMN hops BIGINT NOT NULL DEFAULT 0;
ALTER TABLE events ADD COLUMN root TEXT NOT NULL DEFAULT '';
