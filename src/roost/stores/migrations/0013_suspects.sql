-- Suspects: what may have been under way when a process died. attempts counts tries that have failed, no others.

ALTER TABLE inbox ADD COLUMN suspect BIGINT NOT NULL DEFAULT 0;   -- see core.suspects

CREATE INDEX inbox_by_suspect ON inbox (suspect) WHERE suspect > 0;

-- What was put to rest for a person and has been taken up since is due at -1 instead of being counted as tried.
UPDATE inbox SET due = -1 WHERE kind = 'talk' AND due = 0 AND attempts > 0;

UPDATE inbox SET attempts = attempts - 1 WHERE attempts > 0;
