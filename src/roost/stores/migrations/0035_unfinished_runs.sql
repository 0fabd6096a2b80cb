-- oldest: 32
-- Lists of runs that have failed, were stopped or wait, which are few among all.

CREATE INDEX runs_by_outcome ON runs (outcome, run_id) WHERE outcome <> 'done';
