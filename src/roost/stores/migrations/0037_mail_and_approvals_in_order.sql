-- oldest: 32
-- Pages of mailboxes in both orders, numbers of unread mail, and pending approvals: each by an index, without a sort.

CREATE INDEX mail_by_age ON mail (recipient, mail_id);

CREATE INDEX mail_by_urgency ON mail (
    recipient,
    (CASE priority WHEN 'low' THEN 0 WHEN 'normal' THEN -1 WHEN 'high' THEN -2 WHEN 'urgent' THEN -3 END),
    rank,
    mail_id
);

DROP INDEX mail_by_recipient;

-- With `status`, since SQLite otherwise reads the mail itself to check it.
CREATE INDEX mail_unread_by_expiry ON mail (recipient, status, expires) WHERE status = 'unread';

DROP INDEX mail_unread;

CREATE INDEX approvals_pending ON approvals (user_id, approval_id) WHERE decision = '';
