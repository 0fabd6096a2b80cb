-- The version of the schema that each node knows: a step that older programs do not work with waits until they are gone.

ALTER TABLE nodes ADD COLUMN schema_version BIGINT NOT NULL DEFAULT 30;
