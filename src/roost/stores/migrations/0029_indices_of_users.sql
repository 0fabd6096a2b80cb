-- Indices by which the rows of a user are found, when a name is given to somebody or a user is deleted.

CREATE INDEX mail_by_person ON mail (sender) WHERE sender > 'user:' AND sender < 'user;';
CREATE INDEX audit_by_actor ON audit (actor);
CREATE INDEX audit_by_target ON audit (target);
CREATE INDEX webhook_deliveries_by_user ON webhook_deliveries (user_id);
CREATE INDEX hook_requests_by_user ON hook_requests (user_id);
