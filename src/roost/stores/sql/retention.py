"""Retention: find finished rows that are too old, page by page, and remove them in small writes.

Ids begin with their time, so that only candidates are read. Unfinished rows are never removed: each condition excludes
them, and is checked again on removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.values.ids import encode
from roost.errors import NotFound
from roost.ports import Tx
from roost.stores import locking
from roost.stores.sql.meetings import registry
from roost.stores.sql.tables import attachments
from roost.stores.sql.talks import talks

_IN_INBOX = "EXISTS (SELECT 1 FROM inbox i WHERE i.envelope_id = {0})"
_IS_DEAD = "EXISTS (SELECT 1 FROM dead_letters d WHERE d.envelope_id = {0} AND d.envelope_id <> '')"
_PARTS = ("first", "second", "third")
"""Parameter names for the parts of a key."""


_MEETING = "over, status, called, turn"
_OVER_BEFORE = (
    "COALESCE(over, CASE WHEN status IN ('declined', 'left', 'kicked') THEN called END) < :before"
    f" AND (turn = '' OR NOT {_IN_INBOX.format('meetings.turn')})"
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of row: its table, its key, and the condition for removal."""

    table: str
    key: tuple[str, ...]
    reads: str
    """Columns that `over` needs: large texts are not read."""
    over: str
    prefix: str = ""
    """Prefix of its ids, if a time follows it."""


_KINDS = {
    "runs": _Kind("runs", ("run_id",), "ended", "ended < :before", "run"),
    # Recorded steps are needed as long as attempts may be repeated.
    "steps": _Kind(
        "steps",
        ("envelope_id", "step"),
        "created",
        f"created < :before AND NOT {_IN_INBOX.format('steps.envelope_id')}"
        f" AND NOT {_IS_DEAD.format('steps.envelope_id')}",
    ),
    "approvals": _Kind(
        "approvals",
        ("approval_id",),
        "created, envelope_id",
        f"created < :before AND NOT {_IN_INBOX.format('approvals.envelope_id')}",
        "approval",
    ),
    "events": _Kind(
        "events",
        ("event_id",),
        "created",
        "created < :before AND NOT EXISTS (SELECT 1 FROM inbox i"
        " WHERE i.envelope_id > events.event_id || ':' AND i.envelope_id < events.event_id || ';')",
        "event",
    ),
    "budgets": _Kind("budgets", ("root",), "touched", "touched < :before"),
    "changes": _Kind("agent_changes", ("address", "change_id"), "at", "at < :before"),
    "tasks": _Kind(
        "tasks",
        ("task_id",),
        "status, ended",
        "status IN ('done', 'failed', 'cancelled', 'expired') AND ended < :before"
        f" AND NOT {_IN_INBOX.format('tasks.task_id')} AND NOT {_IS_DEAD.format('tasks.task_id')}",
        "task",
    ),
    # `last` is the time of the last tick.
    "schedules": _Kind(
        "schedules",
        ("schedule_id",),
        "next, paused, last",
        "next IS NULL AND paused = 0 AND last < :before",
        "schedule",
    ),
    "mail": _Kind(
        "mail",
        ("mail_id",),
        "status, expires, processed, read_at, created",
        "(status <> 'unread' OR expires < :before) AND COALESCE(processed, read_at, created) < :before"
        f" AND NOT {_IN_INBOX.format('mail.mail_id')} AND NOT {_IS_DEAD.format('mail.mail_id')}",
        "mail",
    ),
    "deliveries": _Kind(
        "webhook_deliveries", ("delivery_id",), "state, created", "state <> 'pending' AND created < :before", "msg"
    ),
    "hook_requests": _Kind("hook_requests", ("hook_id", "request_id"), "created", "created < :before"),
    "letters": _Kind("dead_letters", ("letter_id",), "created", "created < :before", "letter"),
    "talks": _Kind(
        "talks",
        ("talk_id",),
        "updated, waiting, answer_seq",
        "updated < :before AND waiting = 0 AND answer_seq = 0",
        "talk",
    ),
    # Those of talks are removed with the talk.
    "diary": _Kind("diary", ("owner", "lane", "run_id"), "0 AS small", "lane <> '' AND run_id < :run"),
    "artifacts": _Kind(
        "artifacts",
        ("artifact_id",),
        "owner, lane, created",
        "lane <> '' AND owner <> 'user' AND created < :before",
        "artifact",
    ),
    "attachments": _Kind(
        "attachments", ("attachment_id",), "created", f"created < :before AND {attachments.UNUSED}", "attachment"
    ),
    # A participant that has left gets no more posts: for it the meeting is over.
    "meeting_logs": _Kind(
        "meetings", ("participant", "meeting_id"), f"minutes, {_MEETING}", f"{_OVER_BEFORE} AND minutes IS NULL"
    ),
    "meetings": _Kind("meetings", ("participant", "meeting_id"), _MEETING, _OVER_BEFORE),
    "audit": _Kind("audit", ("entry_id",), "at", "at < :before", "audit"),
}


@dataclass(frozen=True, slots=True)
class OldPage:
    """Keys that may be removed, and the key after which the next page begins; `()` after the last page."""

    keys: tuple[tuple[str, ...], ...]
    next_after: tuple[str, ...]


def old(tx: Tx, kind: str, before: float, after: Sequence[str], limit: int) -> OldPage:
    """Read up to `limit` rows in key order, from `after` on; return those that may be removed."""
    k = _KINDS[kind]
    names = ", ".join(k.key)
    ids = dict(zip(_PARTS, after, strict=False))
    bounds = [f"({names}) > ({', '.join(f':{name}' for name in ids)})"] if after else []
    if k.prefix:
        bounds.append(f"{k.key[0]} < :newest")
    where = f" WHERE {' AND '.join(bounds)}" if bounds else ""
    params = {**_typed(k, ids), **_times(before), "limit": limit, "newest": f"{k.prefix}_{encode(_ms(before), 0)}"}
    page = f"SELECT {names}, {k.reads} FROM {k.table}{where} ORDER BY {names} LIMIT :limit"
    found = tx.read(f"SELECT {names} FROM ({page}) AS {k.table} WHERE {k.over} ORDER BY {names}", params)
    last = tx.read(f"SELECT {names} FROM {k.table}{where} ORDER BY {names} LIMIT 1 OFFSET :limit - 1", params)
    return OldPage(tuple(_texts(row) for row in found), _texts(last[0]) if last else ())


@locking.locks(lambda tx, kind, before, keys: [locking.talk(key[0]) for key in keys if kind == "talks"])
def remove(tx: Tx, kind: str, before: float, keys: Sequence[Sequence[str]]) -> int:
    """Remove those that still may be removed, with everything that belongs to them; return their number."""
    if kind == "talks":
        return sum(_remove_talk(tx, key[0], before) for key in keys)
    if kind == "attachments":
        return attachments.remove(tx, [key[0] for key in keys])
    if kind == "meeting_logs":
        return sum(registry.compact(tx, participant, meeting_id) for participant, meeting_id in keys)
    if kind == "meetings":
        for participant, meeting_id in keys:
            registry.compact(tx, participant, meeting_id)
    return _delete(tx, _KINDS[kind], before, keys)


def _delete(tx: Tx, k: _Kind, before: float, keys: Sequence[Sequence[str]]) -> int:
    """Delete what is over from the first of these keys to the last.

    There are two statements, since each one, and each row of a result, releases the interpreter lock.
    """
    names = ", ".join(k.key)
    params: dict[str, str | float] = {**_times(before)}
    bounds = [k.over]
    for sign, end, key in ((">=", "from", keys[0]), ("<=", "to", keys[-1])):
        ids = _typed(k, dict(zip(_PARTS, key, strict=False)))
        params |= {f"{name}_{end}": value for name, value in ids.items()}
        bounds.append(f"({names}) {sign} ({', '.join(f':{name}_{end}' for name in ids)})")
    where = f"FROM {k.table} WHERE {' AND '.join(bounds)}"
    [[count]] = tx.read(f"SELECT count(*) {where}", params)
    tx.write(f"DELETE {where}", params)
    return int(count)


def give_back(tx: Tx, pages: int, keep: float) -> bool:
    """Give free pages back to the file system, as `Tx.give_back` does."""
    return tx.give_back(pages, keep)


def _remove_talk(tx: Tx, talk_id: str, before: float) -> int:
    ids = {"talk": talk_id, "before": before}
    row = tx.one(f"SELECT user_id FROM talks WHERE talk_id = :talk AND {_KINDS['talks'].over}{tx.for_update}", ids)
    if row is None:
        return 0
    try:
        talks.delete(tx, row[0], talk_id)
    except NotFound:
        return 0
    return 1


def _times(before: float) -> dict[str, str | float]:
    """Return the bound as a time, and as the smallest id of a run at that time."""
    return {"before": before, "run": f"run_{encode(_ms(before), 0)}"}


def _typed(k: _Kind, ids: dict[str, str]) -> dict[str, str | int]:
    """Return keys with their types: they are passed as text, but a step's number is an integer."""
    return {name: int(v) if k.table == "steps" and name == "second" else v for name, v in ids.items()}


def _texts(row: Sequence[object]) -> tuple[str, ...]:
    return tuple(str(value) for value in row)


def _ms(seconds: float) -> int:
    return max(0, int(seconds * 1000))
