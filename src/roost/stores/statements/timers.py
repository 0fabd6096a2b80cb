"""Timers and schedules: what is due is fired in batches, each tick once. Never looks at what is not due."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roost.core import schedules
from roost.core.agents import AgentConfig
from roost.core.envelopes import Envelope, Kind
from roost.core.messages import at
from roost.core.priority import Priority, rank
from roost.core.schedules import Fired, Missed, Overlap, Schedule
from roost.errors import Conflict, LimitReached, NotFound
from roost.ports import Row, Tx
from roost.stores.statements import bulk, burial, mail
from roost.stores.statements.envelopes import watch_expiry
from roost.stores.statements.posting import post_tasks, refuse_tick
from roost.stores.statements.sleep import arm_all

BATCH = 2_000
AGAIN = 10.0
"""Seconds after which a sleeper whose time has come, and at whom nobody has looked, is looked at again."""
_SCHEDULE = (
    "schedule_id, address, user_id, name, prompt, priority, rule, overlap, missed, catch_up, paused, next, created"
)
_PREFIX = "schedule:"
_MEETING = "meeting:"


def fire(tx: Tx, now: float, new_id: Callable[[], str], has_begun: Callable[[str, str], bool]) -> Fired:
    """Do what is due: wake whom it wakes, post what schedules post, and advance the timers, all at once."""
    rows = tx.read(
        "SELECT address, key FROM timers WHERE due <= :now ORDER BY due LIMIT :limit", {"now": now, "limit": BATCH}
    )
    bulk.using(
        tx, "DELETE FROM timers WHERE (address, key) IN (SELECT address, key FROM given)",
        {"address": "TEXT", "key": "TEXT"}, rows,
    )  # fmt: skip
    # Whoever looks at a sleeper takes this away. Until then it is due again: the one that should look may never do so.
    # The same of meetings.
    again = [(address, key, now + AGAIN) for address, key in rows if key == "wake" or key.startswith(_MEETING)]
    arm_all(tx, again)
    looked = {address: key for address, key in rows if not key.startswith((_PREFIX, _MEETING))}
    looked_at = tuple((who, key.removeprefix(_MEETING)) for who, key in rows if key.startswith(_MEETING))
    mail.check(tx, [address for address, key in rows if key == "mail"], now)
    expiring = [address for address, key in rows if key == "expiry"]
    _watch_on(tx, expiring, now)
    ticking = [key.removeprefix(_PREFIX) for _, key in rows if key.startswith(_PREFIX)]
    posted, cancelled = _tick(tx, ticking, now, new_id, has_begun)
    return Fired(
        tuple(looked), tuple(posted), tuple(cancelled), len(rows) == BATCH, next_due(tx), looked_at, tuple(expiring)
    )  # fmt: skip


def _watch_on(tx: Tx, addresses: Sequence[str], now: float) -> None:
    """For what expires later, and after a while for what has expired, if it is still there then."""
    rows = bulk.among(
        tx, "SELECT address, min(expires) FROM inbox WHERE expires IS NOT NULL AND address <> '' AND address IN",
        addresses, " GROUP BY address",
    )  # fmt: skip
    watch_expiry(tx, {address: first if first > now else now + AGAIN for address, first in rows})


def next_due(tx: Tx) -> float | None:
    row = tx.one("SELECT min(due) FROM timers")
    return row[0] if row else None


def _tick(
    tx: Tx, schedule_ids: Sequence[str], now: float, new_id: Callable[[], str], has_begun: Callable[[str, str], bool]
) -> tuple[list[Envelope], list[tuple[str, str]]]:  # fmt: skip
    """What these schedules post now, and which of their tasks they have cancelled, each with its agent."""
    rows = bulk.among(
        tx, "SELECT s.schedule_id, s.address, s.prompt, s.priority, s.rule, s.overlap, s.missed, s.catch_up, s.last,"
        " a.config FROM schedules s JOIN agents a ON a.address = s.address WHERE s.paused = 0 AND s.schedule_id IN",
        schedule_ids,
    )  # fmt: skip
    unfinished = _unfinished(tx, schedule_ids, has_begun)
    depths = _depths(tx, sorted({row[1] for row in rows}))
    posted: list[tuple[Envelope, str]] = []
    cancelled: list[tuple[str, str]] = []
    advanced: list[tuple[str, str, float, float | None]] = []
    for schedule_id, address, prompt, priority, text, overlap, missed, window, last, config in rows:
        rule, settings = schedules.from_json(text), AgentConfig.from_json(config)
        waiting, begun = unfinished.get(schedule_id, ([], []))
        at_once = settings.max_concurrent_tasks  # more have begun if some wait for a person, an answer or another try
        waiting, running = waiting + begun[at_once:], begun[:at_once]
        for _ in schedules.missed_ticks(rule, last, now, Missed(missed), window):
            decision = schedules.admits(Overlap(overlap), len(waiting), len(running))
            if decision == "drop":
                continue
            if decision == "replace":
                cancelled += [(address, task_id) for task_id in waiting + running]
                waiting, running = [], []
            envelope = _envelope(new_id(), schedule_id, address, prompt, Priority(priority), settings, now)
            if depths.get(address, 0) >= settings.inbox_limit:
                refuse_tick(tx, envelope, schedule_id, burial.crowded_out(envelope, settings.inbox_limit))
                continue
            depths[address] = depths.get(address, 0) + 1
            posted.append((envelope, schedule_id))
            waiting.append(envelope.envelope_id)
        reached = max(last, now)
        advanced.append((schedule_id, address, reached, schedules.next_after(rule, reached)))
    post_tasks(tx, posted)
    _cancel(tx, [task_id for _, task_id in cancelled], now)
    _advance(tx, advanced)
    replaced = {task_id for _, task_id in cancelled}
    return [envelope for envelope, _ in posted if envelope.envelope_id not in replaced], cancelled


def _advance(tx: Tx, reached: Sequence[tuple[str, str, float, float | None]]) -> None:
    """Schedules, each with its agent, until when it has posted, and when it does so next."""
    bulk.using(
        tx, "UPDATE schedules SET last = given.last, next = given.next FROM given"
        " WHERE schedules.schedule_id = given.schedule_id",
        {"schedule_id": "TEXT", "last": "DOUBLE PRECISION", "next": "DOUBLE PRECISION"},
        [(schedule_id, last, following) for schedule_id, _, last, following in reached],
    )  # fmt: skip
    arm_all(tx, [(address, _PREFIX + name, due) for name, address, _, due in reached if due is not None])


def _unfinished(
    tx: Tx, schedule_ids: Sequence[str], has_begun: Callable[[str, str], bool]
) -> dict[str, tuple[list[str], list[str]]]:  # fmt: skip
    """Of each schedule its tasks that wait, and those that have begun: being handed over is no beginning."""
    rows = bulk.among(
        tx, "SELECT t.schedule_id, t.address, t.task_id, i.due > 0 FROM tasks t"
        " JOIN inbox i ON i.envelope_id = t.task_id WHERE t.status = 'queued' AND t.schedule_id IN", schedule_ids,
        " ORDER BY t.task_id",
    )  # fmt: skip
    found: dict[str, tuple[list[str], list[str]]] = {}
    for schedule_id, address, task_id, was_tried in rows:
        begun = was_tried or has_begun(address, task_id)
        found.setdefault(schedule_id, ([], []))[1 if begun else 0].append(task_id)
    return found


def _depths(tx: Tx, addresses: Sequence[str]) -> dict[str, int]:
    rows = bulk.among(
        tx, "SELECT address, count(*) FROM inbox WHERE address <> '' AND address IN", addresses, " GROUP BY address"
    )  # fmt: skip
    return {row[0]: row[1] for row in rows}


def _cancel(tx: Tx, task_ids: Sequence[str], now: float) -> None:
    bulk.change(tx, "DELETE FROM inbox WHERE envelope_id IN", task_ids)
    for task_id in task_ids:
        tx.write("UPDATE tasks SET status = 'cancelled', ended = :now WHERE task_id = :id", {"id": task_id, "now": now})


def _envelope(
    task_id: str, schedule_id: str, address: str, prompt: str, priority: Priority, config: AgentConfig, now: float
) -> Envelope:  # fmt: skip
    expires = None if config.task_expiry is None else now + config.task_expiry
    return Envelope(
        task_id, address, Kind.TASK, task_id, priority, f"schedule:{schedule_id}", prompt, now, rank(now, priority),
        most_attempts=config.max_attempts, retry_delay=config.retry_delay, expires=expires, recorded=True,
        attempts=0, claimed=False,
    )  # fmt: skip


# --- schedules as people see them --------------------------------------------------------------------


def create(
    tx: Tx, schedule_id: str, user_id: str, address: str, name: str, prompt: str, priority: str, rule: str,
    overlap: str, missed: str, catch_up: float, now: float, most: int,
) -> Schedule:  # fmt: skip
    if tx.one("SELECT 1 FROM agents WHERE address = :address AND user_id = :user",
              {"address": address, "user": user_id}) is None:  # fmt: skip
        raise NotFound(f"there is no agent {address.rpartition('/')[2]!r}: it was deleted, or it never existed")
    if tx.one("SELECT 1 FROM schedules WHERE address = :address AND name = :name",
              {"address": address, "name": name}) is not None:  # fmt: skip
        raise Conflict(f"this agent has a schedule {name!r} already: choose another name, or change that one")
    have = tx.one(
        "SELECT count(*) FROM schedules WHERE address = :address AND (next IS NOT NULL OR paused = 1)",
        {"address": address},
    )
    if have is not None and have[0] >= most:
        raise LimitReached(f"this agent has {most:,} schedules, and no more are allowed: delete some first")
    when = schedules.from_json(rule)
    last = _start(when, now)
    tx.write(
        f"INSERT INTO schedules ({_SCHEDULE}, last) VALUES (:id, :address, :user, :name, :prompt, :priority, :rule,"
        " :overlap, :missed, :catch_up, 0, NULL, :now, :last)",
        {"id": schedule_id, "address": address, "user": user_id, "name": name, "prompt": prompt, "priority": priority,
         "rule": rule, "overlap": overlap, "missed": missed, "catch_up": catch_up, "now": now, "last": last},
    )  # fmt: skip
    _advance(tx, [(schedule_id, address, last, schedules.next_after(when, last))])
    return get(tx, user_id, schedule_id)


def _start(rule: schedules.Rule, now: float) -> float:
    """After when a new rule counts: from now, but a time that has passed is due at once."""
    return min(now, rule.time - 1.0) if isinstance(rule, schedules.Once) else now


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
    """Set `prompt`, `priority`, `rule`, `overlap`, `missed`, `catch_up` or `paused`.

    A new rule counts from now. What would have come while it was paused is not missed.
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
        when = schedules.from_json(rule)
        last = _start(when, now) if "rule" in values else now
        _advance(tx, [(schedule_id, address, last, schedules.next_after(when, last))])
    return get(tx, user_id, schedule_id)


def delete(tx: Tx, user_id: str, schedule_id: str) -> None:
    """What it has posted stays."""
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
    (schedule_id, address, user_id, name, prompt, priority, rule, overlap, missed, catch_up, paused, following,
     created) = row  # fmt: skip
    return Schedule(
        schedule_id, address.rpartition("/")[2], user_id, name, prompt, Priority(priority), schedules.from_json(rule),
        Overlap(overlap), Missed(missed), catch_up, bool(paused), None if following is None else at(following),
        at(created),
    )  # fmt: skip
