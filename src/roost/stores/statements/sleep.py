"""Falling asleep and waking up, the timers that belong to it, and the record of every change of state."""

from __future__ import annotations

from roost.core import patterns, wake
from roost.core.agents import State
from roost.core.envelopes import Change
from roost.ports import Tx


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
    forget_sleep(tx, key)
    for pattern in wake.patterns(wanted):
        tx.write(
            "INSERT INTO subscriptions (user_id, address, pattern, head, awaited, fields)"
            " VALUES (:user, :address, :pattern, :head, 1, '{}') ON CONFLICT (address, awaited, pattern) DO NOTHING",
            {"user": user_id, "address": key, "pattern": pattern, "head": patterns.head(pattern)},
        )
    if (due := wake.next_time(wanted)) is not None:
        arm(tx, key, "wake", due)


def wake_up(tx: Tx, key: str, change: Change) -> None:
    tx.write(
        "UPDATE agents SET state = 'idle', wake = NULL, wants_load = 0, woken = :reason WHERE address = :address",
        {"address": key, "reason": change.cause},
    )
    forget_sleep(tx, key)
    record(tx, key, change, before=State.SLEEPING)


def forget_sleep(tx: Tx, key: str) -> None:
    tx.write("DELETE FROM subscriptions WHERE address = :address AND awaited = 1", {"address": key})
    tx.write("DELETE FROM timers WHERE address = :address AND key = 'wake'", {"address": key})


def record(tx: Tx, key: str, change: Change, *, before: str | None = None) -> None:
    tx.write(
        "INSERT INTO agent_changes (address, change_id, at, before, after, cause, asked_by)"
        " VALUES (:address, :id, :at, :before, :after, :cause, :by) ON CONFLICT (address, change_id) DO NOTHING",
        {"address": key, "id": change.change_id, "at": change.at, "before": before or change.before,
         "after": change.after, "cause": change.cause, "by": change.by},
    )  # fmt: skip


def arm(tx: Tx, key: str, name: str, due: float, *, earlier: bool = False) -> None:
    """Set a timer; with `earlier` only if none is armed for an earlier time."""
    keep = " WHERE timers.due > excluded.due" if earlier else ""
    tx.write(
        "INSERT INTO timers (address, key, due) VALUES (:address, :key, :due)"
        f" ON CONFLICT (address, key) DO UPDATE SET due = excluded.due{keep}",
        {"address": key, "key": name, "due": due},
    )
