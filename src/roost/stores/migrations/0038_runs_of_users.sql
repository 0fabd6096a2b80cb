-- oldest: 32
-- Lists of all runs of a user. Retention completes the user of older runs, and of those that older programs record.

ALTER TABLE runs ADD COLUMN user_id TEXT;

CREATE INDEX runs_by_user ON runs (user_id, run_id);

CREATE INDEX runs_by_user_and_outcome ON runs (user_id, outcome, run_id) WHERE outcome <> 'done';

DROP INDEX runs_by_outcome;
