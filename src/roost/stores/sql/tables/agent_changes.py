"""History of agents: every change of state is appended here, so that the history is a chain.

An entry begins in the state in which the previous one ended, at no earlier time, and is never changed. An activation
announces its states a moment later: an announcement for an agent that sleeps or is stopped by then is dropped, and an
idle agent is `waiting` if one of its envelopes is parked for a person's decision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from roost.core.agents.agent import FOR_A_PERSON, State, move
from roost.core.envelopes.outcomes import StateChange
from roost.core.values.ids import successor
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.tables.parked import PARKED

CACHE_SIZE = 100_000
"""Largest number of cached ends of histories."""
INACTIVE = frozenset({State.SLEEPING, State.STOPPED})
_COLUMNS = ("address", "change_id", "at", "before", "after", "cause", "asked_by")


@dataclass(slots=True)
class _End:
    """End of an agent's history."""

    agent_state: State
    """The state in the agent's row; used if there is no entry."""
    change_id: str
    at: float
    state: State | None
    """State of the last entry; None if there is none."""
    is_parked: bool = False


def begin(tx: Tx, keys: Sequence[str], change: StateChange) -> None:
    """Write the first entry of new agents."""
    rows = [(key, change.change_id, change.at, None, change.after, change.cause, change.by) for key in keys]
    bulk.insert(tx, "agent_changes", _COLUMNS, rows, " ON CONFLICT (address, change_id) DO NOTHING")


def append(tx: Tx, changes: Sequence[tuple[str, StateChange]]) -> None:
    """Append changes, each with the agent's key, in this order."""
    if not changes:
        return
    ends = _ends(tx, changes)
    recorded = _recorded(tx, ends, changes)
    rows: list[tuple[object, ...]] = []
    for key, change in changes:
        end = ends.get(key)
        if end is None:  # it was deleted meanwhile
            continue
        for earlier in change.earlier:
            if earlier.change_id > end.change_id:
                _add(rows, key, end, earlier)
        if (key, change.change_id) not in recorded:
            _add(rows, key, end, change)
    bulk.insert(tx, "agent_changes", _COLUMNS, rows)


def _add(rows: list[tuple[object, ...]], key: str, end: _End, change: StateChange) -> None:
    before = end.state or (State(change.before) if change.before and not change.announced else end.agent_state)
    after, cause = State(change.after) if change.after else before, change.cause
    if change.announced:
        if before in INACTIVE:
            return
        if after is State.IDLE and end.is_parked:
            after, cause = State.WAITING, FOR_A_PERSON
    if after is before and change.after:
        return
    _write(rows, key, end, change, before, after, cause)
    if after is State.IDLE and before in INACTIVE and end.is_parked:
        _write(rows, key, end, change, after, State.WAITING, FOR_A_PERSON)


def _write(
    rows: list[tuple[object, ...]], key: str, end: _End, change: StateChange, before: State, after: State, cause: str
) -> None:
    if after is not before:
        move(before, after, key)
    end.change_id = max(change.change_id, successor(end.change_id)) if end.change_id else change.change_id
    end.at, end.state = max(change.at, end.at), after
    rows.append((key, end.change_id, end.at, before, after, cause, change.by))


def forget(tx: Tx, keys: Sequence[str]) -> None:
    """Drop cached ends of agents that are new or deleted."""
    for key in keys:
        tx.ends.pop(key, None)


def _ends(tx: Tx, changes: Sequence[tuple[str, StateChange]]) -> dict[str, _End]:
    keys = sorted({key for key, _ in changes})
    cached = {} if tx.for_update else tx.ends
    if len(cached) > CACHE_SIZE:
        cached.clear()
    cached |= _read(tx, [key for key in keys if key not in cached])
    idle = sorted({key for key, change in changes for one in (*change.earlier, change) if one.after == State.IDLE})
    parked = parked_agents(tx, idle)
    for key in idle:
        if key in cached:
            cached[key].is_parked = key in parked
    return cached


def _read(tx: Tx, keys: Sequence[str]) -> dict[str, _End]:
    if tx.for_update:  # lock first: the rows that are read must not be older than the lock
        bulk.read(tx, "SELECT 1 FROM agents WHERE address IN", keys, f" ORDER BY address{tx.for_update}")
    rows = bulk.read(
        tx,
        "SELECT a.address, a.state, c.change_id, c.at, c.after FROM agents a LEFT JOIN agent_changes c"
        " ON c.address = a.address AND c.change_id ="
        " (SELECT max(m.change_id) FROM agent_changes m WHERE m.address = a.address) WHERE a.address IN",
        keys,
    )
    return {
        key: _End(State(agent_state), change_id or "", at or 0.0, State(last_state) if last_state else None)
        for key, agent_state, change_id, at, last_state in rows
    }


def _recorded(tx: Tx, ends: dict[str, _End], changes: Sequence[tuple[str, StateChange]]) -> set[tuple[str, str]]:
    """Return changes that are recorded already: they were passed with a later change."""
    late = sorted((key, c.change_id) for key, c in changes if key in ends and c.change_id <= ends[key].change_id)
    rows = bulk.with_batch(
        tx,
        "SELECT address, change_id FROM agent_changes WHERE (address, change_id) IN"
        " (SELECT address, change_id FROM batch)",
        {"address": "TEXT", "change_id": "TEXT"},
        late,
    )
    return {(row[0], row[1]) for row in rows}


def parked_agents(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Return the agents with an envelope that is parked for a person's decision."""
    rows = bulk.read(tx, f"SELECT DISTINCT address FROM inbox WHERE address <> '' AND {PARKED} AND address IN", keys)
    return {row[0] for row in rows}


def append_idle(tx: Tx, key: str, change: StateChange) -> None:
    """Append that an agent is idle if its inbox is empty, since its activation may have ended without announcing it."""
    row = tx.one(f"SELECT 1 FROM inbox WHERE address = :key AND address <> '' AND NOT {PARKED} LIMIT 1", {"key": key})
    if row is None:
        append(tx, [(key, change)])
