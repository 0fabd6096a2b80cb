-- A message's place in the history of its talk is its number, less the withdrawn ones before it: those are few.

CREATE INDEX messages_withdrawn ON messages (talk_id, status, seq) WHERE status = 'withdrawn';
