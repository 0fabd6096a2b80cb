-- What agents say beside their answers: what they think, what they do.

ALTER TABLE messages ADD COLUMN notes TEXT NOT NULL DEFAULT '';
ALTER TABLE parts ADD COLUMN notes TEXT NOT NULL DEFAULT '';
