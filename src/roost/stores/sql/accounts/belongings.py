"""Belongings of a user: the rows of each table that are theirs, as they are exported and deleted."""

from __future__ import annotations

from dataclasses import dataclass

from roost.stores import bulk

_USERS = "user_id = :user"
_TALKS = "talk_id IN (SELECT talk_id FROM talks WHERE user_id = :user)"
_AGENTS = "address IN (SELECT address FROM agents WHERE user_id = :user)"
_HELD = (
    "{0} IN (SELECT talk_id FROM talks WHERE user_id = :user UNION ALL"
    " SELECT address FROM agents WHERE user_id = :user)"
)
_SEATS = "participant IN (SELECT participant FROM meetings WHERE user_id = :user)"
_MAILED = "{0} = :me OR {0} IN (SELECT 'agent:' || address FROM agents WHERE user_id = :user)"
GUEST = "sender = :me AND sender > 'user:' AND sender <> 'user:' || user_id"
"""Condition: a task that the user has sent to an agent of another user."""
OF_USER = "owner = 'user' AND lane LIKE :ending ESCAPE '!' AND NOT lane LIKE :longer ESCAPE '!'"
"""Condition: a value or a file that brains keep for this user, in the lane `APP/USER`."""
MANY, FEW = 500, 8
"""Rows of one read: few where each may have megabytes."""


@dataclass(frozen=True, slots=True)
class Belonging:
    """Rows of a table that belong to a user. `columns` are exported; `hidden` ones are secrets and counters."""

    table: str
    where: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    hidden: tuple[str, ...] = ()
    rows: int = MANY


def _of(table: str, where: str, key: str, more: str, *, hidden: str = "", rows: int = MANY) -> Belonging:
    keys = bulk.columns(key)
    return Belonging(table, where, keys, (*keys, *bulk.columns(more)), bulk.columns(hidden) if hidden else (), rows)


EXPORTED = (
    _of("accounts", _USERS, "user_id", "role, created, disabled", hidden="password, epoch"),
    _of("identities", _USERS, "issuer, subject", "user_id, created"),
    _of("tokens", _USERS, "token_id", "user_id, name, scopes, created, expires", hidden="digest"),
    _of(
        "talks",
        _USERS,
        "talk_id",
        "user_id, profile, busy, title, options, created, updated, last_seq, agent, parent, parent_seq, root, state",
        hidden="revision, epoch, waiting, answer_seq, branch_key, node",
        rows=FEW,
    ),
    _of(
        "messages",
        _TALKS,
        "talk_id, seq",
        "sender, content, status, error, run_id, key, created, notes, attachments",
        hidden="revision",
        rows=FEW,
    ),
    _of("attachments", _USERS, "attachment_id", "user_id, name, media_type, size, sha256, complete, created"),
    _of(
        "attachment_pieces",
        "attachment_id IN (SELECT attachment_id FROM attachments WHERE user_id = :user)",
        "attachment_id, piece",
        "data",
        rows=FEW,
    ),
    _of("talk_values", _TALKS, "talk_id, kind, name, seq", "value", rows=FEW),
    _of(
        "agents",
        _USERS,
        "address",
        "user_id, agent_id, config, state, paused, memory, wake, woken, errors, created, last_active",
        hidden="epoch, wants_load, node",
        rows=FEW,
    ),
    _of("agent_changes", _AGENTS, "address, change_id", "at, before, after, cause, asked_by"),
    _of("memories", _AGENTS, "address, number", "key, text, created"),
    _of("subscriptions", _USERS, "address, awaited, pattern", "user_id, fields", hidden="head"),
    _of(
        "schedules",
        _USERS,
        "schedule_id",
        "address, user_id, name, prompt, priority, rule, overlap, missed, catch_up, paused, last, next, created",
    ),
    _of(
        "tasks",
        "(user_id = :user OR sender = :me)",
        "task_id",
        "address, user_id, sender, prompt, priority, status, attempts, created, started, ended, expires, result, error,"
        " fault, schedule_id, key",
        rows=FEW,
    ),
    _of(
        "mail",
        f"({_MAILED.format('recipient')} OR {_MAILED.format('sender')})",
        "mail_id",
        "thread_id, sender, recipient, subject, body, priority, status, reply_to, created, expires, read_at, processed,"
        " key",
        hidden="rank, arrival",
    ),
    _of(
        "inbox",
        f"({_AGENTS} OR lane IN (SELECT talk_id FROM talks WHERE user_id = :user))",
        "envelope_id",
        "address, lane, kind, priority, sender, body, created, due, attempts, status, expires, root, hops, seq, busy,"
        " ask",
        hidden="rank, most_attempts, retry_delay, recorded, suspect",
        rows=FEW,
    ),
    _of(
        "events", _USERS, "event_id", "user_id, name, data, priority, publisher, created, takers, hops, root", rows=FEW
    ),
    _of(
        "dead_letters",
        _USERS,
        "letter_id",
        "user_id, address, kind, fault, reason, attempts, created, envelope, envelope_id",
        rows=FEW,
    ),
    _of(
        "meetings",
        _USERS,
        "participant, meeting_id",
        "user_id, creator, topic, phase, status, called, over, minutes",
        hidden="contents, entries, heard, asked, turn, turns, timer, pace, hops, root, key",
        rows=FEW,
    ),
    _of("meeting_log", _SEATS, "participant, meeting_id, author, number", "entry, key"),
    _of(
        "approvals",
        _USERS,
        "approval_id",
        "user_id, holder, agent_id, talk_id, envelope_id, step, run_id, kind, tool, arguments, created, decision,"
        " decided, note, profile, seq",
        rows=FEW,
    ),
    _of("permissions", _USERS, "user_id, agent_id, profile, tool", "created"),
    _of(
        "runs",
        f"({_TALKS} OR {_AGENTS})",
        "run_id",
        "talk_id, address, kind, outcome, seq, attempts, started, first_chunk, ended, fault, stop_requested,"
        " stop_acknowledged, stop_quiesced, abandoned, envelope_id, said, root, model, input_tokens, output_tokens,"
        " cost, given",
        hidden="traceback, user_id",
        rows=FEW,
    ),
    _of(
        "steps",
        _HELD.format("holder"),
        "envelope_id, step",
        "holder, run_id, kind, name, key, outcome, request, result, done, created, ended",
        rows=FEW,
    ),
    _of("diary", _HELD.format("owner"), "owner, lane, run_id", "content, seqs", rows=FEW),
    _of("diary_values", f"({_HELD.format('owner')} OR ({OF_USER}))", "owner, lane, name", "value", rows=FEW),
    _of(
        "artifacts",
        f"({_HELD.format('owner')} OR ({OF_USER}))",
        "artifact_id",
        "owner, lane, name, version, content, about, created",
        rows=FEW,
    ),
    _of(
        "webhooks",
        _USERS,
        "webhook_id",
        "user_id, name, url, events, created, paused, reason, failures, last_success, missed",
        hidden="secret, old_secret, old_until",
    ),
    _of(
        "webhook_deliveries",
        _USERS,
        "delivery_id",
        "webhook_id, user_id, event, body, state, created, due, attempts, status, seconds, error, reply",
        rows=FEW,
    ),
    _of("hooks", _USERS, "hook_id", "user_id, name, event, agent, task, headers, created", hidden="digest, secret"),
    _of("audit", "(actor = :user OR target = :user)", "entry_id", "at, actor, action, target, address, detail"),
)
"""In the order of an export."""
NOT_EXPORTED = {
    "users": "names",
    "invitations": "digests of codes",
    "ended_sessions": "digests without a name",
    "used_codes": "digests without a name",
    "password_guesses": "digests without a name",
    "deletions": "the deletion itself",
    "message_attachments": "the messages name their files",
    "parts": "checkpoints of messages",
    "search_blocks": "an index",
    "memory_words": "an index",
    "mailboxes": "counts",
    "hook_requests": "ids of requests",
    "timers": "follow from agents and schedules",
    "budgets": "counts by origin",
    "spending": "counts by profile",
    "figures": "counts by time",
    "nodes": "processes of the service",
    "facts": "kept for a moment, for followers on all nodes",
    "meta": "about the database",
}
REMAINING = {
    "tasks": _USERS,
    "schedules": _USERS,
    "events": _USERS,
    "subscriptions": _USERS,
    "dead_letters": _USERS,
    "approvals": _USERS,
    "permissions": _USERS,
    "webhook_deliveries": _USERS,
    "facts": _USERS,
    "figures": _USERS,
    "hooks": _USERS,
    "hook_requests": _USERS,
    "tokens": _USERS,
    "invitations": _USERS,
    "identities": _USERS,
    "meetings": _USERS,
    "meeting_log": "participant = :me",
    "mail": "recipient = :me",
    "mailboxes": "recipient = :me",
    "timers": "address = :me OR address = :owner",
    "diary_values": OF_USER,
    "artifacts": OF_USER,
}
"""Conditions for rows that are left when the agents and the talks of a user are deleted."""
KEYS = {
    "invitations": ("user_id",),
    "mailboxes": ("recipient",),
    "timers": ("address", "key"),
    "facts": ("number",),
    "figures": ("user_id", "name", "width", "start", "label", "bin"),
    "hook_requests": ("hook_id", "request_id"),
    **{one.table: one.key for one in EXPORTED},
}


KNOWN_BY = {
    **{one.table: _USERS for one in EXPORTED if one.where == _USERS},
    "users": _USERS,
    "deletions": _USERS,
    "tasks": f"{_USERS} OR ({GUEST})",
    "mail": "recipient = :me OR (sender = :me AND sender > 'user:' AND sender < 'user;')",
    "audit": "actor = :user OR target = :user",
    "diary_values": OF_USER,
    "artifacts": OF_USER,
}
"""Conditions for rows that name the user. Each has an index: new names are checked in a write."""


def params(user_id: str) -> dict[str, str]:
    """Return the parameters of the conditions."""
    ending, me, owner = escaped(user_id), f"user:{user_id}", f"{user_id}/"
    return {"user": user_id, "me": me, "owner": owner, "ending": f"%/{ending}", "longer": f"%/%/{ending}"}


def escaped(text: str) -> str:
    """Return a text for a pattern of `LIKE … ESCAPE '!'`."""
    return text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
