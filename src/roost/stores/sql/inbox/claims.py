"""Claims: hand over agents' work to their activations, for many agents at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.values.priority import Priority
from roost.ports import ClaimEnvironment, ClaimRequest, Row, Tx
from roost.stores import bulk
from roost.stores.sql import mail
from roost.stores.sql.sleep.conditions import latch, wake_up
from roost.stores.sql.tables.envelopes import ENVELOPE, envelope_of
from roost.stores.sql.tables.parked import PARKED, PARKED_TALK

TAKE = 1_000
"""Envelopes handed over at once, at most."""


def take(tx: Tx, looks: tuple[ClaimRequest, ...], world: ClaimEnvironment) -> tuple[ClaimedWork, ...]:
    """Claim the work of agents: wake those whose condition is met, and return their envelopes.

    With `anew` a previous activation can no longer write. Agents with a profile that is unknown here are left alone.
    """
    rows = bulk.among(
        tx,
        "SELECT address, state, paused, config, epoch, memory, errors, wake FROM agents WHERE address IN",
        sorted(look.address for look in looks),
        f" ORDER BY address{tx.for_update}",
    )
    found: dict[str, Row] = {row[0]: row for row in rows}
    missing = _missing(found, looks, world)
    here = [look for look in looks if look.address in found and look.address not in missing]
    woken = _wake(tx, [found[look.address] for look in here], world)
    may = {key for key, row in found.items() if not row[2] and key not in missing}
    ready = {key for key in may if found[key][1] == State.IDLE or key in woken}
    anew = {look.address for look in looks if look.is_new} & ready
    bulk.change(tx, "UPDATE agents SET epoch = epoch + 1 WHERE address IN", sorted(anew))
    envelopes = _hand_over(tx, sorted(ready), world.time)
    waited_for = {key for key in missing if not found[key][2] and found[key][1] != State.STOPPED}
    talks = _talks(tx, sorted(ready | waited_for))
    taken = []
    for look in looks:
        key = look.address
        if key not in ready:
            told, lacks = tuple(talks.get(key, ())), missing.get(key, "")
            taken.append(ClaimedWork(key, found=key in found, ready=False, talks=told, missing=lacks))
            continue
        _, _, _, config, epoch, memory, errors, _ = found[key]
        given, more = envelopes.get(key, ((), 0))
        taken.append(
            ClaimedWork(
                key,
                True,
                True,
                config,
                epoch + int(key in anew),
                memory,
                errors,
                given,
                tuple(talks.get(key, ())),
                more,
                woken.get(key),
                key in anew,
            )
        )
    return tuple(taken)


def _missing(found: Mapping[str, Row], looks: Iterable[ClaimRequest], world: ClaimEnvironment) -> dict[str, str]:
    """Return agents with an unknown profile, and the profile: they are not touched, not even their timers."""
    profiles = {
        look.address: AgentConfig.from_json(found[look.address][3]).profile
        for look in looks
        if look.is_new and look.address in found  # an awake agent is already running
    }
    return {key: profile for key, profile in profiles.items() if profile and not world.knows(profile)}


def _wake(tx: Tx, agents: Sequence[Row], world: ClaimEnvironment) -> dict[str, str]:
    """Wake sleeping agents whose condition is met; return the reasons."""
    asleep = {row[0]: wake.from_json(row[7]) for row in agents if row[1] == State.SLEEPING}
    paused = {row[0] for row in agents if row[2]}
    came = _came(tx, sorted(asleep))
    latched = {key: _latched(wanted, came.get(key, ()), world.time) for key, wanted in asleep.items()}
    reasons = {key: _reason(latched[key], came.get(key, ()), world) for key in asleep if key not in paused}
    woken = {key: reason for key, reason in reasons.items() if reason is not None}
    sleep_on = [(key, was, latched[key]) for key, was in asleep.items() if key not in woken]
    latch(tx, [(key, was, after) for key, was, after in sleep_on if after is not was])
    mail.check(tx, sorted(woken), world.time)  # an agent that wakes checks its mail
    wake_up(tx, [(key, _woken(why, world)) for key, why in woken.items()])
    return woken


def _woken(why: str, world: ClaimEnvironment) -> StateChange:
    return StateChange(world.new_id(), world.time, State.SLEEPING, State.IDLE, why, "roost")


def _came(tx: Tx, keys: Sequence[str]) -> dict[str, list[Row]]:
    """Return what each agent received while asleep or just before; it is still in its inbox, so the inbox decides."""
    found: dict[str, list[Row]] = {}
    for row in bulk.among(
        tx,
        "SELECT address, kind, CASE WHEN kind = 'event' THEN lane ELSE '' END AS what, priority, min(rank) AS first"
        f" FROM inbox WHERE kind IN ('talk', 'event', 'mail', 'meeting') AND NOT {PARKED} AND address <> ''"
        " AND address IN",
        keys,
        " GROUP BY 1, 2, 3, 4 ORDER BY 5",
    ):
        found.setdefault(row[0], []).append(row)
    return found


def _latched(wanted: wake.Condition, came: Iterable[Row], now: float) -> wake.Condition:
    """Return the condition after everything that has happened; the same object if nothing of it has."""
    condition = wake.passed(wanted, now)
    for _, kind, lane, priority, _ in came:
        if kind == Kind.EVENT:
            condition = wake.heard(condition, lane.removeprefix("event:"))
        elif kind in (Kind.MAIL, Kind.MEETING):  # meeting posts wake like mail
            condition = wake.got_mail(condition, Priority(priority))
    return condition


def _reason(condition: wake.Condition, came: Iterable[Row], world: ClaimEnvironment) -> str | None:
    for _, kind, lane, priority, _ in came:
        if kind == Kind.TALK:
            return "talk"
        if kind == Kind.EVENT and priority == Priority.URGENT:
            return f"event {lane.removeprefix('event:')}"
    return wake.reason(condition, cpu=world.cpu, awake=world.awake) or None


def _talks(tx: Tx, keys: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return talks with these agents in which a message waits for an answer."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, talk_id, user_id in bulk.among(
        tx,
        "SELECT agent, talk_id, user_id FROM talks WHERE (waiting > 0 OR answer_seq > 0) AND agent <> ''"
        f" AND NOT {PARKED_TALK} AND agent IN",
        keys,
    ):
        found.setdefault(key, []).append((talk_id, user_id))
    return found


_DUE = f"due <= {{}} AND NOT {PARKED}"
_OF_GIVEN = (
    "SELECT address, lane, envelope_id FROM given CROSS JOIN inbox WHERE address = given.agent AND address <> ''"
)
_HELD = (
    f"SELECT address, lane, min(envelope_id) FROM ({_OF_GIVEN} AND due > 0 AND due > given.time"
    f" UNION ALL {_OF_GIVEN} AND {PARKED}) AS held GROUP BY address, lane"
)
_WAITING = (
    f"SELECT {ENVELOPE}, EXISTS (SELECT 1 FROM steps WHERE steps.envelope_id = inbox.envelope_id) AS journaled"
    " FROM inbox"
)


def _hand_over(tx: Tx, keys: Sequence[str], now: float) -> dict[str, tuple[tuple[Envelope, ...], int]]:
    """Return the envelopes of each agent, in order of urgency, and how many more there are."""
    given: dict[str, tuple[tuple[Envelope, ...], int]] = {}
    for start in range(0, len(keys), 256):
        part = keys[start : start + 256]
        rows = bulk.among(
            tx,
            f"{_WAITING} WHERE {_DUE.format('?')} AND kind <> 'talk' AND address <> '' AND address IN",
            part,
            f" ORDER BY address, rank, envelope_id LIMIT {TAKE + 1}",
            [now],
        )
        if len(rows) <= TAKE:
            given |= {key: (found, 0) for key, found in _admitted(tx, part, rows, now).items()}
        elif len(part) == 1:
            some = _with_earlier(tx, part[0], now, rows[:TAKE])
            more = max(1, _count(tx, part[0], now) - len(some))
            given |= {key: (found, more) for key, found in _admitted(tx, part, some, now).items()}
        else:  # too many for one hand-over
            for key in part:
                given |= _hand_over(tx, [key], now)
    return given


def _count(tx: Tx, key: str, now: float) -> int:
    row = tx.one(
        f"SELECT count(*) FROM inbox WHERE {_DUE.format(':now')} AND kind <> 'talk' AND address <> ''"
        " AND address = :address",
        {"now": now, "address": key},
    )
    return int(row[0]) if row else 0


def _admitted(tx: Tx, keys: Sequence[str], rows: Iterable[Row], now: float) -> dict[str, tuple[Envelope, ...]]:
    """Return all but those behind an envelope of their lane that is parked or waits for its time."""
    rows_held = bulk.using(tx, _HELD, {"agent": "TEXT", "time": "DOUBLE PRECISION"}, [(key, now) for key in keys])
    held: dict[tuple[str, str], str] = {(row[0], row[1]): row[2] for row in rows_held}
    given: dict[str, list[Envelope]] = {}
    for row in rows:
        if held.get((row[1], row[3]), row[0]) >= row[0]:
            given.setdefault(row[1], []).append(envelope_of(row, journaled=bool(row[-1])))
    return {key: tuple(envelopes) for key, envelopes in given.items()}


def _with_earlier(tx: Tx, key: str, now: float, rows: list[Row]) -> list[Row]:
    """Add what comes before them in their lanes, even if less urgent: a lane keeps its order."""
    last: dict[str, str] = {}
    for row in rows:
        if row[3] != row[0]:  # most tasks have their own lane
            last[row[3]] = max(last.get(row[3], ""), row[0])
    if not last:
        return rows
    less_urgent = tx.read(
        "SELECT envelope_id, lane FROM inbox WHERE address = :address AND address <> '' AND rank >= :rank"
        f" AND envelope_id < :last AND {_DUE.format(':now')}",
        {"address": key, "rank": rows[-1][8], "last": max(last.values()), "now": now},
    )
    there = {row[0] for row in rows}
    earlier = [e for e, lane in less_urgent if e not in there and e < last.get(lane, "")]
    return [*rows, *bulk.among(tx, f"{_WAITING} WHERE envelope_id IN", earlier)]
