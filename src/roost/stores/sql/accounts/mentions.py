"""Mentions of a deleted user in what others keep: the name in addresses is replaced by a pseudonym."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any

from roost.core.accounts.pseudonyms import Renaming
from roost.core.envelopes.lanes import log_lane, turn_lane
from roost.core.meetings.view.minutes import minutes as minutes_of
from roost.ports import Row, Tx
from roost.stores.sql.accounts.belongings import escaped
from roost.stores.sql.meetings.registry import load_log

COLUMNS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "tasks": (("task_id",), ("sender", "result", "error")),
    "mail": (("mail_id",), ("sender",)),
    "inbox": (("envelope_id",), ("sender", "body", "ask", "root")),
    "events": (("event_id",), ("data", "publisher", "root")),
    "dead_letters": (("letter_id",), ("reason", "envelope", "envelope_id")),
    "runs": (("run_id",), ("said", "given", "root", "envelope_id", "traceback")),
    "steps": (("envelope_id", "step"), ("name", "request", "result", "key")),
    "agent_changes": (("address", "change_id"), ("cause", "asked_by")),
    "meetings": (("participant", "meeting_id"), ("creator", "minutes", "heard", "asked", "turn", "root")),
    "diary": (("owner", "lane", "run_id"), ("content",)),
    "webhook_deliveries": (("delivery_id",), ("body", "reply")),
    "audit": (("entry_id",), ("detail",)),
}
"""Tables with addresses of other users: their keys, and the columns that may have some."""


def find(tx: Tx, table: str, names: Renaming, after: Sequence[Any], limit: int) -> list[Row]:
    """Return keys and columns of rows that may mention the user, in the order of their keys."""
    keys, columns = COLUMNS[table]
    wanted = _patterns(names)
    mentioned = " OR ".join(f"{column} LIKE :{part} ESCAPE '!'" for column in columns for part in wanted)
    place = dict(zip(keys, after, strict=False))
    beyond = f" AND ({', '.join(keys)}) > ({', '.join(f':{name}' for name in place)})" if place else ""
    return tx.read(
        f"SELECT {', '.join((*keys, *columns))} FROM {table} WHERE ({mentioned}){beyond}"
        f" ORDER BY {', '.join(keys)} LIMIT :limit",
        {**wanted, **place, "limit": limit},
    )


def rename(tx: Tx, table: str, names: Renaming, rows: Sequence[Row]) -> int:
    """Replace the name in these rows, unless they have changed since; return the number of changed rows."""
    keys, columns = COLUMNS[table]
    count = 0
    for row in rows:
        before = dict(zip(columns, row[len(keys) :], strict=True))
        after = {name: names.renamed(text) for name, text in before.items() if text is not None}
        changed = {name: text for name, text in after.items() if text != before[name]}
        if not changed:
            continue
        where = " AND ".join([f"{key} = :{key}" for key in keys] + [f"{name} = :old_{name}" for name in changed])
        setting = ", ".join(f"{name} = :new_{name}" for name in changed)
        values = {f"new_{name}": text for name, text in changed.items()}
        values |= {f"old_{name}": before[name] for name in changed} | dict(zip(keys, row, strict=False))
        count += len(tx.write(f"UPDATE {table} SET {setting} WHERE {where} RETURNING 1", values))
    return count


def shared_meetings(tx: Tx, names: Renaming, limit: int) -> list[str]:
    """Return meetings of others that the user, or an agent of the user, took part in."""
    wanted = _patterns(names)
    mentioned = " OR ".join(f"entry LIKE :{part} ESCAPE '!'" for part in wanted)
    rows = tx.read(
        f"SELECT meeting_id, entry FROM meeting_log WHERE {mentioned} ORDER BY meeting_id LIMIT :limit",
        {**wanted, "limit": limit},
    )
    return sorted({meeting for meeting, entry in rows if names.renamed(entry) != entry})


def reduce_meeting(tx: Tx, meeting_id: str, names: Renaming, now: float) -> int:
    """Reduce a meeting to its minutes, for all participants: entries of its log cannot be changed. It ends, too."""
    ids = {"meeting": meeting_id, "now": now, "log": log_lane(meeting_id), "turn": turn_lane(meeting_id)}
    rows = tx.read("SELECT participant FROM meetings WHERE meeting_id = :meeting AND minutes IS NULL", ids)
    for (participant,) in rows:
        seat = load_log(tx, participant, meeting_id)
        kept = "" if seat is None else names.renamed(minutes_of(seat.version.view))
        tx.write(
            "UPDATE meetings SET minutes = :minutes, phase = CASE WHEN phase IN ('calling', 'running') THEN 'ended'"
            " ELSE phase END, over = COALESCE(over, :now), timer = NULL, turn = '', heard = '{}', asked = '[]'"
            " WHERE participant = :who AND meeting_id = :meeting",
            {**ids, "minutes": kept, "who": participant},
        )
    tx.write("DELETE FROM inbox WHERE lane = :log OR lane = :turn", ids)
    tx.write("DELETE FROM meeting_log WHERE meeting_id = :meeting", ids)
    return len(rows)


def _patterns(names: Renaming) -> dict[str, str]:
    """Return parameters with patterns of LIKE; each text that mentions the user matches one."""
    return {f"part_{letter}": f"%{escaped(part)}%" for letter, part in zip(ascii_lowercase, names.parts, strict=False)}
