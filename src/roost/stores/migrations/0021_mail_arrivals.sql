-- Arrivals of mail at people, numbered in each mailbox in the order of the commits.

CREATE TABLE mailboxes (
    recipient TEXT PRIMARY KEY,
    arrivals BIGINT NOT NULL             -- number of the newest
)
WITHOUT ROWID -- sqlite
;

ALTER TABLE mail ADD COLUMN arrival BIGINT NOT NULL DEFAULT 0;   -- 0: it is older than this column, or an agent's

CREATE INDEX mail_by_arrival ON mail (recipient, arrival) WHERE arrival > 0;
