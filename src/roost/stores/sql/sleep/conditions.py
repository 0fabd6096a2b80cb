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


def await_condition(tx: Tx, user_id: str, key: str, condition: wake.Condition) -> bool:
    """Put the agent to sleep with this condition, in place of a previous one. Return False if it is stopped or gone."""
    changed = tx.write(
        "UPDATE agents SET state = 'sleeping', wake = :wake, wants_load = :load"
        f" WHERE address = :address AND state IN ({_MAY_SLEEP}) RETURNING address",
        {"address": key, "wake": wake.to_json(condition), "load": int(wake.wants_load(condition))},
    )
    if not changed:
        return False
    clear_wake_condition(tx, [key])
    for pattern in wake.patterns(condition):
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields)"
            " VALUES (:user, :address, :pattern, :head, 1, '{}') ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {"user": user_id, "address": key, "pattern": pattern, "head": patterns.head(pattern)},
        )
    if (due := wake.next_time(condition)) is not None:
        arm(tx, key, "wake", due)
    return True


def latch(tx: Tx, sleepers: Sequence[tuple[str, wake.Condition, wake.Condition]]) -> None:
    """Update conditions of which a part was met; each sleeping agent with its old and its new condition."""
    bulk.with_batch(
        tx,
        "UPDATE agents SET wake = batch.wake FROM batch WHERE agents.address = batch.address",
        {"address": "TEXT", "wake": "TEXT"},
        [(key, wake.to_json(after)) for key, _, after in sleepers],
    )
    met_patterns = [
        (key, p) for key, before, after in sleepers for p in wake.patterns(before) if p not in wake.patterns(after)
    ]
    bulk.with_batch(
        tx,
        "DELETE FROM subscriptions WHERE awaited = 1 AND (address, pattern) IN (SELECT address, pattern FROM batch)",
        {"address": "TEXT", "pattern": "TEXT"},
        met_patterns,
    )
    times = [(key, wake.next_time(before), wake.next_time(after)) for key, before, after in sleepers]
    arm_all(tx, [(key, "wake", due) for key, before, due in times if due is not None and due != before])
    without_time = [key for key, before, due in times if due is None and before is not None]
    bulk.write(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", without_time)


def wake_up(tx: Tx, changes: Sequence[tuple[str, StateChange]]) -> None:
    """Wake these agents, each with its cause."""
    bulk.with_batch(
        tx,
        "UPDATE agents SET state = 'idle', wake = NULL, wants_load = 0, woken = batch.reason FROM batch"
        " WHERE agents.address = batch.address AND agents.state = 'sleeping'",
        {"address": "TEXT", "reason": "TEXT"},
        [(key, change.cause) for key, change in changes],
    )
    clear_wake_condition(tx, [key for key, _ in changes])
    check_meetings(tx, [key for key, _ in changes], max((c.at for _, c in changes), default=0.0))
    append(tx, [(key, replace(change, before=State.SLEEPING)) for key, change in changes])


def clear_wake_condition(tx: Tx, keys: Sequence[str]) -> None:
    bulk.write(tx, "DELETE FROM subscriptions WHERE awaited = 1 AND address IN", keys)
    bulk.write(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", keys)


def check_meetings(tx: Tx, keys: Sequence[str], now: float) -> None:
    """Arm timers so that agents that were stopped, paused or asleep ask for missed meeting entries."""
    rows = bulk.read(
        tx,
        "SELECT participant, 'meeting:' || meeting_id FROM meetings WHERE status = 'in'"
        " AND phase IN ('calling', 'running') AND participant IN",
        [f"agent:{key}" for key in keys],
    )
    arm_all(tx, [(participant, key, now) for participant, key in rows])
