"""Falling asleep and waking up, the timers that belong to it, and the record of every change of state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from roost.core import patterns, wake
from roost.core.agents import State
from roost.core.envelopes import Change
from roost.ports import Tx
from roost.stores.statements import bulk


def fall_asleep(
    tx: Tx, user_id: str, key: str, condition: str, change: Change, *, before: str | None = None
) -> None:  # fmt: skip
    await_condition(tx, user_id, key, wake.from_json(condition))
    record(tx, key, change, before=before)


def await_condition(tx: Tx, user_id: str, key: str, wanted: wake.Condition) -> None:
    """It sleeps, and this is what it waits for: in place of whatever it waited for before."""
    tx.write(
        "UPDATE agents SET state = 'sleeping', wake = :wake, wants_load = :load WHERE address = :address",
        {"address": key, "wake": wake.to_json(wanted), "load": int(wake.wants_load(wanted))},
    )
    forget_sleep(tx, [key])
    for pattern in wake.patterns(wanted):
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields)"
            " VALUES (:user, :address, :pattern, :head, 1, '{}') ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {"user": user_id, "address": key, "pattern": pattern, "head": patterns.head(pattern)},
        )
    if (due := wake.next_time(wanted)) is not None:
        arm(tx, key, "wake", due)


def latch(tx: Tx, sleepers: Sequence[tuple[str, wake.Condition, wake.Condition]]) -> None:
    """Part of what these wait for has been, each with what it waited for and what that is now: the rest is left."""
    bulk.using(
        tx, "UPDATE agents SET wake = given.wake FROM given WHERE agents.address = given.address",
        {"address": "TEXT", "wake": "TEXT"}, [(key, wake.to_json(after)) for key, _, after in sleepers],
    )  # fmt: skip
    heard = [(key, p) for key, was, after in sleepers for p in wake.patterns(was) if p not in wake.patterns(after)]
    bulk.using(
        tx, "DELETE FROM subscriptions WHERE awaited = 1"
        " AND (address, pattern) IN (SELECT address, pattern FROM given)",
        {"address": "TEXT", "pattern": "TEXT"}, heard,
    )  # fmt: skip
    times = [(key, wake.next_time(was), wake.next_time(after)) for key, was, after in sleepers]
    arm_all(tx, [(key, "wake", due) for key, was, due in times if due is not None and due != was])
    nothing_left = [key for key, was, due in times if due is None and was is not None]
    bulk.change(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", nothing_left)


def sleeping(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Those of them that sleep."""
    rows = bulk.among(tx, "SELECT address FROM agents WHERE state = 'sleeping' AND address IN", keys)
    return {row[0] for row in rows}


def wake_up(tx: Tx, changes: Sequence[tuple[str, Change]]) -> None:
    """Wake these, each for the cause of its change."""
    bulk.using(
        tx, "UPDATE agents SET state = 'idle', wake = NULL, wants_load = 0, woken = given.reason FROM given"
        " WHERE agents.address = given.address",
        {"address": "TEXT", "reason": "TEXT"}, [(key, change.cause) for key, change in changes],
    )  # fmt: skip
    forget_sleep(tx, [key for key, _ in changes])
    look_at_meetings(tx, [key for key, _ in changes], max((c.at for _, c in changes), default=0.0))
    record_all(tx, [(key, replace(change, before=State.SLEEPING)) for key, change in changes])


def forget_sleep(tx: Tx, keys: Sequence[str]) -> None:
    bulk.change(tx, "DELETE FROM subscriptions WHERE awaited = 1 AND address IN", keys)
    bulk.change(tx, "DELETE FROM timers WHERE key = 'wake' AND address IN", keys)


def look_at_meetings(tx: Tx, keys: Sequence[str], now: float) -> None:
    """Agents that were away ask what they have missed."""
    rows = bulk.among(
        tx, "SELECT participant, 'meeting:' || meeting_id FROM meetings WHERE status = 'in'"
        " AND phase IN ('calling', 'running') AND participant IN", [f"agent:{key}" for key in keys],
    )  # fmt: skip
    arm_all(tx, [(participant, key, now) for participant, key in rows])


def record(tx: Tx, key: str, change: Change, *, before: str | None = None) -> None:
    record_all(tx, [(key, replace(change, before=before) if before is not None else change)])


def record_all(tx: Tx, changes: Sequence[tuple[str, Change]]) -> None:
    """Changes of agents' states, each with the agent's key."""
    rows = [(key, c.change_id, c.at, c.before, c.after, c.cause, c.by) for key, c in changes]
    bulk.insert(tx, "agent_changes", _CHANGE, rows, " ON CONFLICT (address, change_id) DO NOTHING")


_CHANGE = ("address", "change_id", "at", "before", "after", "cause", "asked_by")


def arm(tx: Tx, key: str, name: str, due: float, *, earlier: bool = False) -> None:
    """Set a timer; with `earlier` only if none is armed for an earlier time."""
    arm_all(tx, [(key, name, due)], " WHERE timers.due > excluded.due" if earlier else "")


def arm_all(tx: Tx, timers: Sequence[tuple[str, str, float]], only: str = "") -> None:
    ending = f" ON CONFLICT (address, key) DO UPDATE SET due = excluded.due{only}"
    bulk.insert(tx, "timers", ("address", "key", "due"), timers, ending)
