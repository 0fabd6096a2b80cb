-- Late answers have a kind of their own. Those that wait, or are dead letters, were written as tasks.

UPDATE inbox SET kind = 'answer'
WHERE kind = 'task' AND recorded = 0 AND envelope_id LIKE '%_late' AND body LIKE '{"late": true, "asked": %';

UPDATE dead_letters SET kind = 'answer', envelope = REPLACE(envelope, '"kind": "task"', '"kind": "answer"')
WHERE kind = 'task' AND envelope_id LIKE '%_late' AND envelope LIKE '%"body": "{_"late_": true, _"asked_": %';
