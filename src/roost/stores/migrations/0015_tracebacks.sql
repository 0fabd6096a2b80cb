-- The traceback of a run that has failed, for the author of its brain: cut to a bounded size, without secrets.

ALTER TABLE runs ADD COLUMN traceback TEXT;
