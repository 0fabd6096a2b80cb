-- Webhooks of users, and the facts that are posted to them.

CREATE TABLE webhooks (
    webhook_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    name TEXT NOT NULL,
    url TEXT NOT NULL,
    events TEXT NOT NULL,                -- names and patterns of facts, separated by spaces
    secret TEXT NOT NULL,                -- signs requests, so it is stored as it is
    old_secret TEXT,                     -- signs too, until old_until
    old_until DOUBLE PRECISION,
    created DOUBLE PRECISION NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0,
    reason TEXT,                         -- of the pause
    failures INTEGER NOT NULL DEFAULT 0, -- failed attempts since the last success
    last_success DOUBLE PRECISION,
    missed BIGINT NOT NULL DEFAULT 0     -- facts that were not kept
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX webhooks_by_user ON webhooks (user_id, webhook_id);

CREATE TABLE webhook_deliveries (
    delivery_id TEXT PRIMARY KEY,
    webhook_id TEXT NOT NULL,
    user_id TEXT NOT NULL,
    event TEXT NOT NULL,                 -- name of the fact
    body TEXT NOT NULL,                  -- message as JSON
    state TEXT NOT NULL,                 -- pending, delivered, failed
    created DOUBLE PRECISION NOT NULL,
    due DOUBLE PRECISION NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    status INTEGER,                      -- HTTP status of the last attempt
    seconds DOUBLE PRECISION,
    error TEXT,
    reply TEXT NOT NULL DEFAULT ''
)
WITHOUT ROWID -- sqlite
;

CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, delivery_id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (webhook_id, due) WHERE state = 'pending';
