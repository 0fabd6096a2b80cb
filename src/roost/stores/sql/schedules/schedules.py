"""Timers and schedules: fire what is due in batches, each tick once.

Rows that are not due are never read. Another user's schedule is `NotFound`, like one that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roost.core.agents.agent import AgentConfig
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.lanes import tick_lane
from roost.core.schedules import rules
from roost.core.schedules.rules import MissedPolicy, Overlap
from roost.core.schedules.schedule import Fired, Schedule
from roost.core.talks.messages import at
from roost.core.values.priority import Priority, rank
from roost.errors import Conflict, LimitReached, NotFound
from roost.ports import Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql import mail
from roost.stores.sql.schedules.clock_changes import realign, was_ahead
from roost.stores.sql.sending.tasks import Tick, post_ticks, refuse_tick, release_ticks
from roost.stores.sql.tables import dead_letters, owners
from roost.stores.sql.tables.disabled import is_disabled
from roost.stores.sql.tables.envelopes import watch_expiry
from roost.stores.sql.tables.timers import arm_all

__all__ = ["change", "create", "delete", "fire", "get", "listed", "next_due", "realign", "was_ahead"]

BATCH = 2_000
RECHECK = 10.0
"""Seconds after which a due timer fires again, unless its agent or meeting was checked."""
_SCHEDULE = (
    "schedule_id, address, user_id, name, prompt, priority, rule, overlap, missed, catch_up, paused, next, created"
)
_REMOVE = "DELETE FROM timers WHERE (address, key, due) IN (SELECT address, key, due FROM batch) RETURNING address, key"
_PREFIX = "schedule:"
_MEETING = "meeting:"


def _by_due_timers(tx: Tx, now: float, *_: object) -> locking.Rows:
    return [locking.agent(address.removeprefix("agent:")) for address, *_ in _due(tx, now)]


def _due(tx: Tx, now: float) -> list[Row]:
    query = f"SELECT address, key, due FROM timers WHERE due <= :now{_own(tx)} ORDER BY due LIMIT :limit"
    return tx.read(query, {"now": now, "limit": BATCH, "node": tx.node})


def _own(tx: Tx) -> str:
    """Return the condition that a timer does not belong to an agent of another node."""
    key = "CASE WHEN timers.address LIKE 'agent:%' THEN substr(timers.address, 7) ELSE timers.address END"
    return owners.and_own_agent(tx, key)


@locking.locks(_by_due_timers)
def fire(tx: Tx, now: float, new_id: Callable[[], str], has_begun: Callable[[str, str], bool]) -> Fired:
    """Fire due timers: wake agents, post the tasks of schedules, and advance the timers, in one transaction.

    `new_id` makes a task id. `has_begun` says whether an agent's task that was handed over is running, which is not
    stored.
    """
    due = _due(tx, now)
    removed = bulk.with_batch(tx, _REMOVE, {"address": "TEXT", "key": "TEXT", "due": "DOUBLE PRECISION"}, due)
    own = {(address, key) for address, key in removed}  # another node may have fired some of them meanwhile
    rows = [(address, key) for address, key, _ in due if (address, key) in own]
    # The check of a sleeping agent or a meeting removes this timer. Until then it is due again: a check may be lost.
    rechecks = [(address, key, now + RECHECK) for address, key in rows if key == "wake" or key.startswith(_MEETING)]
    arm_all(tx, rechecks)
    agents_to_check = {address: key for address, key in rows if not key.startswith((_PREFIX, _MEETING))}
    meetings_to_check = tuple(
        (participant, key.removeprefix(_MEETING)) for participant, key in rows if key.startswith(_MEETING)
    )
    mail.check(tx, [address for address, key in rows if key == "mail"], now)
    expiring = [address for address, key in rows if key == "expiry"]
    _rearm_expiry(tx, expiring, now)
    schedule_ids = [key.removeprefix(_PREFIX) for _, key in rows if key.startswith(_PREFIX)]
    posted, cancelled = _tick(tx, schedule_ids, now, new_id, has_begun)
    return Fired(
        tuple(agents_to_check),
        tuple(posted),
        tuple(cancelled),
        len(due) == BATCH,
        next_due(tx),
        meetings_to_check,
        tuple(expiring),
    )


def _rearm_expiry(tx: Tx, addresses: Sequence[str], now: float) -> None:
    """Arm the timer for the next expiry, or a recheck for envelopes that have expired and are still in the inbox."""
    rows = bulk.read(
        tx,
        "SELECT address, min(CASE WHEN expires > ? THEN expires ELSE ? END) FROM inbox"
        " WHERE expires IS NOT NULL AND address <> '' AND address IN",
        addresses,
        " GROUP BY address",
        first=(now, now + RECHECK),
    )
    watch_expiry(tx, {row[0]: row[1] for row in rows})


def next_due(tx: Tx) -> float | None:
    """Return when the next timer is due."""
    if not tx.node:
        row = tx.one("SELECT min(due) FROM timers")
    else:
        row = tx.one(f"SELECT due FROM timers WHERE TRUE{_own(tx)} ORDER BY due LIMIT 1", {"node": tx.node})
    return row[0] if row else None


def _tick(
    tx: Tx, schedule_ids: Sequence[str], now: float, new_id: Callable[[], str], has_begun: Callable[[str, str], bool]
) -> tuple[list[Envelope], list[tuple[str, str]]]:
    """Return what these schedules post now, and the tasks they cancelled, each with its agent.

    Ticks of disabled users are skipped, and not missed.
    """
    rows = bulk.read(
        tx,
        "SELECT s.schedule_id, s.address, s.prompt, s.priority, s.rule, s.overlap, s.missed, s.catch_up, s.last,"
        f" a.config, {is_disabled('s.user_id')} FROM schedules s JOIN agents a ON a.address = s.address"
        " WHERE s.paused = 0 AND s.schedule_id IN",
        schedule_ids,
    )
    unfinished = _unfinished(tx, schedule_ids, has_begun)
    depths = _depths(tx, sorted({row[1] for row in rows}))
    ticks: list[Tick] = []
    cancelled: list[tuple[str, str]] = []
    advanced: list[tuple[str, str, float, float | None]] = []
    for schedule_id, address, prompt, priority, text, overlap, missed, window, last, config, skipped in rows:
        rule, settings = rules.from_json(text), AgentConfig.from_json(config)
        waiting, begun = unfinished.get(schedule_id, ([], []))
        waiting, running = waiting + begun[1:], begun[:1]  # they share a lane
        times = () if skipped else rules.missed_ticks(rule, last, now, MissedPolicy(missed), window)
        for time in times:
            decision = rules.admits(Overlap(overlap), len(waiting), len(running))
            if decision == "drop":
                continue
            if decision == "replace":
                cancelled += [(address, task_id) for task_id in waiting + running]
                waiting, running = [], []
            envelope = _envelope(new_id(), schedule_id, address, prompt, Priority(priority), settings, now)
            tick = Tick(schedule_id, time, envelope)
            if depths.get(address, 0) >= settings.inbox_limit:
                refuse_tick(tx, tick, dead_letters.inbox_full(envelope, settings.inbox_limit))
                continue
            depths[address] = depths.get(address, 0) + 1
            ticks.append(tick)
            waiting.append(envelope.envelope_id)
        reached = max(last, now)
        advanced.append((schedule_id, address, reached, rules.next_after(rule, reached)))
    posted = post_ticks(tx, ticks)
    _cancel(tx, [task_id for _, task_id in cancelled], now)
    _advance(tx, advanced)
    replaced = {task_id for _, task_id in cancelled}
    return [envelope for envelope in posted if envelope.envelope_id not in replaced], cancelled


def _advance(tx: Tx, advanced: Sequence[tuple[str, str, float, float | None]]) -> None:
    """Advance schedules, each with its agent, its last posted time and its next time."""
    bulk.with_batch(
        tx,
        "UPDATE schedules SET last = batch.last, next = batch.next FROM batch"
        " WHERE schedules.schedule_id = batch.schedule_id",
        {"schedule_id": "TEXT", "last": "DOUBLE PRECISION", "next": "DOUBLE PRECISION"},
        [(schedule_id, last, next_time) for schedule_id, _, last, next_time in advanced],
    )
    arm_all(tx, [(address, _PREFIX + name, due) for name, address, _, due in advanced if due is not None])


def _unfinished(
    tx: Tx, schedule_ids: Sequence[str], has_begun: Callable[[str, str], bool]
) -> dict[str, tuple[list[str], list[str]]]:
    """Return for each schedule its waiting tasks and its started ones. A task that was only handed over still waits."""
    rows = bulk.read(
        tx,
        "SELECT t.schedule_id, t.address, t.task_id, i.attempts > 0 OR i.status <> 'ready' FROM tasks t"
        " JOIN inbox i ON i.envelope_id = t.task_id WHERE t.status = 'queued' AND t.schedule_id IN",
        schedule_ids,
        " ORDER BY t.task_id",
    )
    found: dict[str, tuple[list[str], list[str]]] = {}
    for schedule_id, address, task_id, was_attempted in rows:
        has_started = was_attempted or has_begun(address, task_id)
        found.setdefault(schedule_id, ([], []))[1 if has_started else 0].append(task_id)
    return found


def _depths(tx: Tx, addresses: Sequence[str]) -> dict[str, int]:
    rows = bulk.read(
        tx, "SELECT address, count(*) FROM inbox WHERE address <> '' AND address IN", addresses, " GROUP BY address"
    )
    return {row[0]: row[1] for row in rows}


def _cancel(tx: Tx, task_ids: Sequence[str], now: float) -> None:
    bulk.write(tx, "DELETE FROM inbox WHERE envelope_id IN", task_ids)
    for task_id in task_ids:
        tx.write("UPDATE tasks SET status = 'cancelled', ended = :now WHERE task_id = :id", {"id": task_id, "now": now})


def _envelope(
    task_id: str, schedule_id: str, address: str, prompt: str, priority: Priority, config: AgentConfig, now: float
) -> Envelope:
    expires = None if config.task_expiry is None else now + config.task_expiry
    return Envelope(
        task_id,
        address,
        Kind.TASK,
        tick_lane(schedule_id),
        priority,
        f"schedule:{schedule_id}",
        prompt,
        now,
        rank(now, priority),
        most_attempts=config.max_attempts,
        retry_delay=config.retry_delay,
        expires=expires,
        recorded=True,
    )


# --- schedules of users --------------------------------------------------------------------


def create(
    tx: Tx,
    schedule_id: str,
    user_id: str,
    address: str,
    name: str,
    prompt: str,
    priority: str,
    rule: str,
    overlap: str,
    missed: str,
    catch_up: float,
    now: float,
    most: int,
) -> Schedule:
    """Create a schedule. Raise Conflict if its name is in use, LimitReached beyond `most` recurring ones."""
    if (
        tx.one(
            "SELECT 1 FROM agents WHERE address = :address AND user_id = :user", {"address": address, "user": user_id}
        )
        is None
    ):
        raise NotFound(f"there is no agent {address.rpartition('/')[2]!r}: it was deleted, or it never existed")
    if (
        tx.one("SELECT 1 FROM schedules WHERE address = :address AND name = :name", {"address": address, "name": name})
        is not None
    ):
        raise Conflict(f"this agent has a schedule {name!r} already: choose another name, or change that one")
    count = tx.one(
        "SELECT count(*) FROM schedules WHERE address = :address AND (next IS NOT NULL OR paused = 1)",
        {"address": address},
    )
    if count is not None and count[0] >= most:
        raise LimitReached(f"this agent has {most:,} schedules, and no more are allowed: delete some first")
    when = rules.from_json(rule)
    last = _start(when, now)
    tx.write(
        f"INSERT INTO schedules ({_SCHEDULE}, last) VALUES (:id, :address, :user, :name, :prompt, :priority, :rule,"
        " :overlap, :missed, :catch_up, 0, NULL, :now, :last)",
        {
            "id": schedule_id,
            "address": address,
            "user": user_id,
            "name": name,
            "prompt": prompt,
            "priority": priority,
            "rule": rule,
            "overlap": overlap,
            "missed": missed,
            "catch_up": catch_up,
            "now": now,
            "last": last,
        },
    )
    _advance(tx, [(schedule_id, address, last, rules.next_after(when, last))])
    return get(tx, user_id, schedule_id)


def _start(rule: rules.Rule, now: float) -> float:
    """Return the time from which a new rule counts: now, but a time that has passed is due at once."""
    return min(now, rule.time - 1.0) if isinstance(rule, rules.Once) else now


def get(tx: Tx, user_id: str, schedule_id: str) -> Schedule:
    row = tx.one(
        f"SELECT {_SCHEDULE} FROM schedules WHERE schedule_id = :id AND user_id = :user",
        {"id": schedule_id, "user": user_id},
    )
    return _schedule_of(_found(row, schedule_id))


def listed(tx: Tx, user_id: str, address: str | None, limit: int, after: str) -> list[Schedule]:
    of_agent = " AND address = :address" if address is not None else ""
    rows = tx.read(
        f"SELECT {_SCHEDULE} FROM schedules WHERE user_id = :user AND schedule_id > :after{of_agent}"
        " ORDER BY schedule_id LIMIT :limit",
        {"user": user_id, "address": address, "after": after, "limit": limit},
    )
    return [_schedule_of(row) for row in rows]


def change(tx: Tx, user_id: str, schedule_id: str, values: dict[str, str | float | int], now: float) -> Schedule:
    """Change a schedule. A new rule counts from now, and a time that has passed is due at once.

    Ticks skipped while it was paused are not missed.
    """
    columns = ", ".join(f"{name} = :{name}" for name in sorted(values))
    rows = tx.write(
        f"UPDATE schedules SET {columns} WHERE schedule_id = :id AND user_id = :user RETURNING address, rule, paused",
        {**values, "id": schedule_id, "user": user_id},
    )
    address, rule, paused = _found(rows[0] if rows else None, schedule_id)
    if paused:
        tx.write("UPDATE schedules SET next = NULL WHERE schedule_id = :id", {"id": schedule_id})
        _disarm(tx, address, schedule_id)
    elif "rule" in values or "paused" in values:
        _disarm(tx, address, schedule_id)
        release_ticks(tx, schedule_id)
        when = rules.from_json(rule)
        last = _start(when, now) if "rule" in values else now
        _advance(tx, [(schedule_id, address, last, rules.next_after(when, last))])
    return get(tx, user_id, schedule_id)


def delete(tx: Tx, user_id: str, schedule_id: str) -> None:
    """Delete a schedule; tasks it posted stay."""
    rows = tx.write(
        "DELETE FROM schedules WHERE schedule_id = :id AND user_id = :user RETURNING address",
        {"id": schedule_id, "user": user_id},
    )
    _disarm(tx, _found(rows[0] if rows else None, schedule_id)[0], schedule_id)


def _disarm(tx: Tx, address: str, schedule_id: str) -> None:
    tx.write(
        "DELETE FROM timers WHERE address = :address AND key = :key",
        {"address": address, "key": _PREFIX + schedule_id},
    )


def _found(row: Row | None, schedule_id: str) -> Row:
    if row is None:
        raise NotFound(f"there is no schedule {schedule_id!r:.80}: it was deleted, or it never existed")
    return row


def _schedule_of(row: Row) -> Schedule:
    (
        schedule_id,
        address,
        user_id,
        name,
        prompt,
        priority,
        rule,
        overlap,
        missed,
        catch_up,
        paused,
        next_time,
        created,
    ) = row
    return Schedule(
        schedule_id,
        address.rpartition("/")[2],
        user_id,
        name,
        prompt,
        Priority(priority),
        rules.from_json(rule),
        Overlap(overlap),
        MissedPolicy(missed),
        catch_up,
        bool(paused),
        None if next_time is None else at(next_time),
        at(created),
    )
