"""Storage used by a user: the sum of the texts that people and agents write, and of the files of messages."""

from __future__ import annotations

from roost.ports import Tx

_SUMS = (
    "SELECT SUM(LENGTH(m.content) + LENGTH(m.notes) + LENGTH(COALESCE(m.error, ''))) FROM talks t"
    " JOIN messages m ON m.talk_id = t.talk_id WHERE t.user_id = :user",
    "SELECT SUM(size) FROM attachments WHERE user_id = :user",
    "SELECT SUM(LENGTH(prompt) + LENGTH(COALESCE(result, ''))) FROM tasks WHERE user_id = :user",
    "SELECT SUM(LENGTH(data)) FROM events WHERE user_id = :user",
    "SELECT SUM(LENGTH(prompt)) FROM schedules WHERE user_id = :user",
    "SELECT SUM(LENGTH(config) + LENGTH(COALESCE(memory, ''))) FROM agents WHERE user_id = :user",
    "SELECT SUM(LENGTH(m.text)) FROM agents a JOIN memories m ON m.address = a.address WHERE a.user_id = :user",
    # Mail from other users does not count: they could exhaust this user's quota.
    "SELECT SUM(LENGTH(subject) + LENGTH(body)) FROM mail WHERE recipient = :box"
    " AND (sender = :box OR SUBSTR(sender, 1, LENGTH(:agents)) = :agents)",
    "SELECT SUM(LENGTH(m.subject) + LENGTH(m.body)) FROM agents a JOIN mail m ON m.recipient = 'agent:' || a.address"
    " WHERE a.user_id = :user AND (m.sender = :box OR SUBSTR(m.sender, 1, LENGTH(:agents)) = :agents)",
)


def stored_chars(tx: Tx, user_id: str) -> int:
    """Return the approximate number of characters, and bytes of files, that the user has stored."""
    names = {"user": user_id, "box": f"user:{user_id}", "agents": f"agent:{user_id}/"}
    rows = [tx.one(sql, {name: value for name, value in names.items() if f":{name}" in sql}) for sql in _SUMS]
    return sum(int(row[0] or 0) for row in rows if row is not None)
