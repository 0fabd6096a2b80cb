-- Arrivals of mail at people: numbers in each mailbox, given to committed mail when somebody reads its arrivals.

CREATE TABLE mailboxes (
    recipient TEXT PRIMARY KEY,
    arrivals BIGINT NOT NULL             -- number of the newest
)
WITHOUT ROWID -- sqlite
;

ALTER TABLE mail ADD COLUMN arrival BIGINT;   -- 0: it has no number yet; NULL: it is to an agent

UPDATE mail SET arrival = 0 WHERE recipient LIKE 'user:%';

CREATE INDEX mail_by_arrival ON mail (recipient, arrival) WHERE arrival IS NOT NULL;
