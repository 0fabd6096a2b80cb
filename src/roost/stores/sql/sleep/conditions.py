"""Wake conditions: agents fall asleep and wake up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roost.core.agents import wake
from roost.core.agents.agent import State, sources
from roost.core.envelopes.outcomes import StateChange
from roost.core.values import patterns
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql.tables.agent_changes import append
from roost.stores.sql.tables.timers import arm, arm_all

_MAY_SLEEP = ", ".join(f"'{state}'" for state in (*sources(State.SLEEPING), State.SLEEPING))


def fall_asleep(tx: Tx, user_id: str, key: str, condition: str, change: StateChange) -> None:
    append(tx, [(key, change)])
    await_condition(tx, user_id, key, wake.from_json(condition))


def await_condition(tx: Tx, user_id: str, key: str, wanted: wake.Condition) -> bool:
    """Put the agent to sleep with this condition, in place of a previous one. Return False if it is stopped or gone."""
    changed = tx.write(
        "UPDATE agents SET state = 'sleeping', wake = :wake, wants_load = :load"
        f" WHERE address = :address AND state IN ({_MAY_SLEEP}) RETURNING address",
        {"address": key, "wake": wake.to_json(wanted), "load": int(wake.wants_load(wanted))},
    )
    if not changed:
        return False
    forget_sleep(tx, [key])
    for pattern in wake.patterns(wanted):
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields)"
            " VALUES (:user, :address, :pattern, :head, 1, '{}') ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {"user": user_id, "address": key, "pattern": pattern, "head": patterns.head(pattern)},
        )
    if (due := wake.next_time(wanted)) is not None:
        arm(tx, key, "wake", due)
    return True


def latch(tx: Tx, sleepers: Sequence[tuple[str, wake.Condition, wake.Condition]]) -> None:
    """Update the conditions of sleepers of which a part was met: each with the old and the new condition."""
    bulk.using(
        tx,
        "UPDATE agents SET wake = given.wake FROM given WHERE agents.address = given.address",
        {"address": "TEXT", "wake": "TEXT"},
        [(key, wake.to_json(after)) for key, _, after in sleepers],
    )
    heard = [(key, p) for key, was, after in sleepers for p in wake.patterns(was) if p not in wake.patterns(after)]
    bulk.using(
        tx,
        "DELETE FROM subscriptions WHERE awaited = 1 AND (address, pattern) IN (SELECT address, pattern FROM given)",
        {"address": "TEXT", "pattern": "TEXT"},
        heard,
    )
    times = [(key, wake.next_time(was), wake.next_time(after)) for key, was, after in sleepers]
    arm_all(tx, [(key, "wake", due) for key, was, due in times if due is not None and due != was])
    nothing_left = [key for key, was, due in times if due is None and was is not None]
    bulk.change(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", nothing_left)


def wake_up(tx: Tx, changes: Sequence[tuple[str, StateChange]]) -> None:
    """Wake these agents, each with its cause."""
    bulk.using(
        tx,
        "UPDATE agents SET state = 'idle', wake = NULL, wants_load = 0, woken = given.reason FROM given"
        " WHERE agents.address = given.address AND agents.state = 'sleeping'",
        {"address": "TEXT", "reason": "TEXT"},
        [(key, change.cause) for key, change in changes],
    )
    forget_sleep(tx, [key for key, _ in changes])
    look_at_meetings(tx, [key for key, _ in changes], max((c.at for _, c in changes), default=0.0))
    append(tx, [(key, replace(change, before=State.SLEEPING)) for key, change in changes])


def forget_sleep(tx: Tx, keys: Sequence[str]) -> None:
    bulk.change(tx, "DELETE FROM subscriptions WHERE awaited = 1 AND address IN", keys)
    bulk.change(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", keys)


def look_at_meetings(tx: Tx, keys: Sequence[str], now: float) -> None:
    """Make agents that were away ask for the meeting entries they missed."""
    rows = bulk.among(
        tx,
        "SELECT participant, 'meeting:' || meeting_id FROM meetings WHERE status = 'in'"
        " AND phase IN ('calling', 'running') AND participant IN",
        [f"agent:{key}" for key in keys],
    )
    arm_all(tx, [(participant, key, now) for participant, key in rows])
