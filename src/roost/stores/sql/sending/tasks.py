"""Tasks that are sent: rows of `tasks` and their envelopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.envelope import Envelope
from roost.errors import Conflict, NotFound
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.tables import capacity
from roost.stores.sql.tables.dead_letters import add_dead_letter
from roost.stores.sql.tables.envelopes import put, put_all


def insert(tx: Tx, envelope: Envelope) -> None:
    if not put(tx, envelope):
        raise NotFound(f"there is no agent {envelope.address.rpartition('/')[2]!r}: it was deleted meanwhile")


def post_tasks(tx: Tx, tasks: Sequence[Envelope]) -> None:
    """Post tasks to agents that exist."""
    put_all(tx, tasks, recorded=True)
    rows = [_task_of(envelope, None, None) for envelope in tasks]
    bulk.insert(tx, "tasks", _TASK, rows, " ON CONFLICT (task_id) DO NOTHING", _QUEUED)


@dataclass(frozen=True, slots=True)
class Tick:
    """One of the times of a schedule, and the envelope of its task."""

    schedule_id: str
    time: float
    envelope: Envelope

    @property
    def row(self) -> tuple[Any, ...]:
        """Return the row of its task. The key is the time: no tick is posted twice, even if two processes fire it."""
        return _task_of(self.envelope, self.schedule_id, repr(self.time))


def post_ticks(tx: Tx, ticks: Sequence[Tick]) -> list[Envelope]:
    """Post ticks to agents that exist; return the envelopes of those that were not posted before."""
    bulk.insert(tx, "tasks", _TASK, [tick.row for tick in ticks], " ON CONFLICT DO NOTHING", _QUEUED)
    task_ids = [tick.envelope.envelope_id for tick in ticks]
    new = {row[0] for row in bulk.read(tx, "SELECT task_id FROM tasks WHERE task_id IN", task_ids)}
    envelopes = [tick.envelope for tick in ticks if tick.envelope.envelope_id in new]
    put_all(tx, envelopes, recorded=True)
    return envelopes


def refuse_tick(tx: Tx, tick: Tick, letter: DeadLetter) -> None:
    """Record a tick that cannot be posted as a failed task."""
    row = (*tick.row, tick.envelope.created, letter.reason, letter.fault)
    failed = {"status": "'failed'", "attempts": "0"}
    bulk.insert(tx, "tasks", (*_TASK, "ended", "error", "fault"), [row], " ON CONFLICT DO NOTHING", failed)
    add_dead_letter(tx, letter)


def release_ticks(tx: Tx, schedule_id: str) -> None:
    """Let a schedule post the same times again: its rule was set anew, or the clock was corrected."""
    tx.write("UPDATE tasks SET key = NULL WHERE schedule_id = :id AND key IS NOT NULL", {"id": schedule_id})


def post_task(tx: Tx, effect: SendTask) -> tuple[Envelope, ...]:
    e = effect.envelope
    if not e.recorded:
        capacity.check(tx, e.address)
        insert(tx, e)
        return (e,)
    if effect.key is not None and same_task(tx, e.address, e.sender, effect.key, e.body):
        return ()
    capacity.check(tx, e.address)
    insert(tx, e)
    bulk.insert(tx, "tasks", _TASK, [_task_of(e, effect.schedule_id, effect.key)], constants=_QUEUED)
    return (e,)


_TASK = bulk.columns("task_id, address, user_id, sender, prompt, priority, created, expires, schedule_id, key")


_QUEUED = {"status": "'queued'", "attempts": "0"}


def _task_of(e: Envelope, schedule_id: str | None, key: str | None) -> tuple[Any, ...]:
    return (
        e.envelope_id,
        e.address,
        e.address.rpartition("/")[0],
        e.sender,
        e.body,
        e.priority,
        e.created,
        e.expires,
        schedule_id,
        key,
    )


def same_task(tx: Tx, address: str, sender: str, key: str, prompt: str) -> str | None:
    """Return the task sent with this key. Raise Conflict if its prompt differs."""
    row = tx.one(
        "SELECT task_id, prompt FROM tasks WHERE address = :address AND sender = :sender AND key = :key",
        {"address": address, "sender": sender, "key": key},
    )
    if row is not None and row[1] != prompt:
        raise Conflict(f"the key {key!r} was used for another task: use a new key for a new task")
    return row[0] if row else None
