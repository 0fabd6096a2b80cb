-- The status of an envelope has a column of its own; before, `due` held a time or one of three marks.

ALTER TABLE inbox ADD COLUMN status TEXT NOT NULL DEFAULT 'ready';   -- see core.envelopes.envelope.EnvelopeStatus

UPDATE inbox SET status = 'parked', due = 0 WHERE due >= 100000000000;

UPDATE inbox SET status = 'decided' WHERE kind = 'talk' AND due = 0 AND status = 'ready';

UPDATE inbox SET status = 'resumed', due = 0 WHERE kind = 'talk' AND due < 0;

CREATE INDEX inbox_parked ON inbox (address, lane) WHERE status = 'parked';
