"""Corrections after a clock error: times computed from a wrong clock are computed again from now."""

from __future__ import annotations

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.outcomes import LONGEST_RETRY
from roost.core.schedules import rules
from roost.core.schedules.rules import AHEAD
from roost.core.schedules.schedule import Realigned
from roost.ports import Tx
from roost.stores import bulk
from roost.stores.sql import mail
from roost.stores.sql.sending.tasks import release_ticks
from roost.stores.sql.tables.timers import arm_all

_PREFIX = "schedule:"


def was_ahead(tx: Tx, now: float) -> bool:
    """Return whether a stored time is more than an hour ahead, which means that a clock was wrong."""
    newest = tx.one("SELECT max(run_id) FROM runs")
    if newest is not None and newest[0] and _time_of_id(newest[0]) > now + AHEAD:
        return True
    query = "SELECT 1 FROM schedules WHERE last > :limit AND (next IS NOT NULL OR paused = 1) LIMIT 1"
    return tx.one(query, {"limit": now + AHEAD}) is not None


def realign(tx: Tx, now: float) -> Realigned:
    """Compute again what was computed by a clock that was ahead by more than an hour.

    Schedules count from now. A sleeping agent sleeps for its full duration, counted from now.
    """
    limit = now + AHEAD
    return Realigned(
        _schedules(tx, now, limit),
        _sleepers(tx, now, limit),
        _mail(tx, now, limit),
        _retries(tx, now),
        _meetings(tx, now, limit),
    )


def _time_of_id(run_id: str) -> float:
    """Return the time in an id."""
    try:
        return int(run_id.rpartition("_")[2][:12], 16) / 1000
    except ValueError:
        return 0.0


def _schedules(tx: Tx, now: float, limit: float) -> tuple[str, ...]:
    """Realign schedules to count from now; a single time that has passed is unchanged."""
    rows = tx.read("SELECT schedule_id, address, rule, paused FROM schedules WHERE last > :limit", {"limit": limit})
    changed = []
    for schedule_id, address, text, paused in rows:
        rule = rules.from_json(text)
        if isinstance(rule, rules.Once):
            continue
        if isinstance(rule, rules.Every) and rule.start > now:
            rule = rules.Every(rule.seconds, now)
        next_time = None if paused else rules.next_after(rule, now)
        tx.write(
            "UPDATE schedules SET last = :now, next = :next, rule = :rule WHERE schedule_id = :id",
            {"id": schedule_id, "now": now, "next": next_time, "rule": rules.to_json(rule)},
        )
        release_ticks(tx, schedule_id)
        if next_time is not None:
            arm_all(tx, [(address, _PREFIX + schedule_id, next_time)])
        changed.append(schedule_id)
    return tuple(changed)


def _sleepers(tx: Tx, now: float, limit: float) -> tuple[str, ...]:
    """Realign agents that fell asleep in the future: they sleep for their full duration; others until their time."""
    rows = tx.read(
        "SELECT a.address, a.wake, t.due, (SELECT max(c.at) FROM agent_changes c WHERE c.address = a.address"
        " AND c.after = 'sleeping') FROM timers t JOIN agents a ON a.address = t.address"
        " WHERE t.key = 'wake' AND t.due > :limit AND a.state = 'sleeping' AND a.wake IS NOT NULL",
        {"limit": limit},
    )
    changed = []
    for address, text, due, since in rows:
        condition = wake.from_json(text)
        if since is not None and since > limit:
            condition = wake.sooner(condition, since - now, now)
        next_time = wake.next_time(condition)
        if next_time is None or next_time == due:
            continue
        ids = {"address": address, "wake": wake.to_json(condition)}
        tx.write("UPDATE agents SET wake = :wake WHERE address = :address", ids)
        arm_all(tx, [(address, "wake", next_time)])
        changed.append(address)
    return tuple(changed)


def _mail(tx: Tx, now: float, limit: float) -> tuple[str, ...]:
    """Make mail due after its agent's check interval at the latest."""
    rows = tx.read(
        "SELECT a.address, a.config, t.due FROM timers t JOIN agents a ON a.address = t.address"
        " WHERE t.key = 'mail' AND t.due > :limit",
        {"limit": limit},
    )
    configs = ((address, AgentConfig.from_json(config), due) for address, config, due in rows)
    late = [(address, config) for address, config, due in configs if due > now + config.check_mail_interval + AHEAD]
    for address, config in late:
        mail.recheck(tx, address, config, now)
    return tuple(address for address, _ in late)


def _retries(tx: Tx, now: float) -> tuple[str, ...]:
    """Make retries due now if they are further away than the longest retry delay."""
    limit = now + LONGEST_RETRY + AHEAD
    rows = tx.read("SELECT address FROM timers WHERE key = 'retry' AND due > :limit", {"limit": limit})
    addresses = sorted(row[0] for row in rows)
    bulk.write(
        tx,
        "UPDATE inbox SET due = ? WHERE attempts > 0 AND due > ? AND address <> '' AND address IN",
        addresses,
        first=[now, limit],
    )
    arm_all(tx, [(address, "retry", now) for address in addresses])
    return tuple(addresses)


def _meetings(tx: Tx, now: float, limit: float) -> tuple[str, ...]:
    """Make participants check their meetings and set their next timers."""
    rows = tx.read("SELECT address, key FROM timers WHERE key LIKE 'meeting:%' AND due > :limit", {"limit": limit})
    arm_all(tx, [(address, key, now) for address, key in rows])
    return tuple(sorted({row[0] for row in rows}))
