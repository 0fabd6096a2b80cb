-- oldest: 32
-- Lists of tasks by status, of runs by outcome and kind, and sums of usage: each by an index, however many rows are over.

-- Without tasks that are done: those are most, and the lists of all tasks find them as quickly.
CREATE INDEX tasks_by_user_and_status ON tasks (user_id, status, task_id) WHERE status <> 'done';

CREATE INDEX tasks_by_agent_and_status ON tasks (address, status, task_id) WHERE status <> 'done';

CREATE INDEX runs_by_user_and_kind ON runs (user_id, kind, run_id);

CREATE INDEX runs_by_agent_and_kind ON runs (address, kind, run_id) WHERE address <> '';

CREATE INDEX runs_by_agent_and_outcome ON runs (address, outcome, run_id) WHERE address <> '' AND outcome <> 'done';

CREATE INDEX runs_by_talk_and_outcome ON runs (talk_id, outcome, run_id) WHERE talk_id <> '' AND outcome <> 'done';

-- With what the sums of a talk need, so that no run itself is read.
CREATE INDEX runs_and_usage_by_talk ON runs (talk_id, run_id, input_tokens, output_tokens, cost);

DROP INDEX runs_by_talk;
