"""Taking: what agents have to do is handed over to whoever works for them here, for many agents at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roost.core import wake
from roost.core.agents import AgentConfig, State
from roost.core.envelopes import Change, Envelope, Kind, Taken
from roost.core.priority import Priority
from roost.ports import Look, Row, Tx, World
from roost.stores.statements import bulk, mail
from roost.stores.statements.envelopes import ENVELOPE, envelope_of
from roost.stores.statements.resting import RESTING_TALK, RESTS
from roost.stores.statements.sleep import latch, wake_up

TAKE = 1_000
"""How many envelopes are handed over at once."""


def take(tx: Tx, looks: tuple[Look, ...], world: World) -> tuple[Taken, ...]:
    rows = bulk.among(
        tx, "SELECT address, state, paused, config, epoch, memory, errors, wake FROM agents WHERE address IN",
        sorted(look.address for look in looks), f" ORDER BY address{tx.for_update}",
    )  # fmt: skip
    untried = [envelope_id for look in looks for envelope_id in look.untried]
    bulk.change(tx, "UPDATE inbox SET attempts = 0 WHERE attempts = 1 AND envelope_id IN", untried)
    found: dict[str, Row] = {row[0]: row for row in rows}
    missing = _missing(found, looks, world)
    here = [look for look in looks if look.address in found and look.address not in missing]
    woken = _wake(tx, [found[look.address] for look in here], world)
    may = {key for key, row in found.items() if not row[2] and key not in missing}
    ready = {key for key in may if found[key][1] == State.IDLE or key in woken}
    anew = {look.address for look in looks if look.anew} & ready
    bulk.change(tx, "UPDATE agents SET epoch = epoch + 1 WHERE address IN", sorted(anew))
    envelopes = _hand_over(tx, sorted(ready), world.time)
    waited_for = {key for key in missing if not found[key][2] and found[key][1] != State.STOPPED}
    talks = _talks(tx, sorted(ready | waited_for))
    taken = []
    for look in looks:
        key = look.address
        if key not in ready:
            told, lacks = tuple(talks.get(key, ())), missing.get(key, "")
            taken.append(Taken(key, found=key in found, ready=False, talks=told, missing=lacks))
            continue
        _, _, _, config, epoch, memory, errors, _ = found[key]
        given, more = envelopes.get(key, ((), 0))
        taken.append(
            Taken(
                key, True, True, config, epoch + int(key in anew), memory, errors, given, tuple(talks.get(key, ())),
                more, woken.get(key), key in anew,
            )
        )  # fmt: skip
    return tuple(taken)


def _missing(found: Mapping[str, Row], looks: Iterable[Look], world: World) -> dict[str, str]:
    """Those whose profile is not known here, and which: nothing of theirs is touched, not even their timers."""
    profiles = {
        look.address: AgentConfig.from_json(found[look.address][3]).profile
        for look in looks
        if look.anew and look.address in found  # who is awake thinks already
    }
    return {key: profile for key, profile in profiles.items() if profile and not world.knows(profile)}


def _wake(tx: Tx, agents: Sequence[Row], world: World) -> dict[str, str]:
    """Wake those who sleep and whom anything that is there wakes; why."""
    asleep = {row[0]: wake.from_json(row[7]) for row in agents if row[1] == State.SLEEPING}
    paused = {row[0] for row in agents if row[2]}
    came = _came(tx, sorted(asleep))
    latched = {key: _latched(wanted, came.get(key, ()), world.time) for key, wanted in asleep.items()}
    reasons = {key: _reason(latched[key], came.get(key, ()), world) for key in asleep if key not in paused}
    woken = {key: reason for key, reason in reasons.items() if reason is not None}
    sleep_on = [(key, was, latched[key]) for key, was in asleep.items() if key not in woken]
    latch(tx, [(key, was, after) for key, was, after in sleep_on if after is not was])
    mail.check(tx, sorted(woken), world.time)  # one who wakes looks at the mail
    wake_up(tx, [(key, _woken(why, world)) for key, why in woken.items()])
    return woken


def _woken(why: str, world: World) -> Change:
    return Change(world.new_id(), world.time, State.SLEEPING, State.IDLE, why, "roost")


def _came(tx: Tx, keys: Sequence[str]) -> dict[str, list[Row]]:
    """What came for each of them while it slept, or just before, is still in its inbox: so the inbox decides."""
    found: dict[str, list[Row]] = {}
    for row in bulk.among(
        tx, "SELECT address, kind, CASE WHEN kind = 'event' THEN lane ELSE '' END AS what, priority, min(rank) AS first"
        f" FROM inbox WHERE kind IN ('talk', 'event', 'mail', 'meeting') AND NOT {RESTS} AND address <> ''"
        " AND address IN", keys,
        " GROUP BY 1, 2, 3, 4 ORDER BY 5",
    ):  # fmt: skip
        found.setdefault(row[0], []).append(row)
    return found


def _latched(wanted: wake.Condition, came: Iterable[Row], now: float) -> wake.Condition:
    """What it waits for after all that has been; the very same if nothing of it has."""
    condition = wake.passed(wanted, now)
    for _, kind, lane, priority, _ in came:
        if kind == Kind.EVENT:
            condition = wake.heard(condition, lane.removeprefix("event:"))
        elif kind in (Kind.MAIL, Kind.MEETING):  # what is said in meetings is heard as mail is
            condition = wake.got_mail(condition, Priority(priority))
    return condition


def _reason(condition: wake.Condition, came: Iterable[Row], world: World) -> str | None:
    for _, kind, lane, priority, _ in came:
        if kind == Kind.TALK:
            return "talk"
        if kind == Kind.EVENT and priority == Priority.URGENT:
            return f"event {lane.removeprefix('event:')}"
    return wake.reason(condition, cpu=world.cpu, awake=world.awake) or None


def _talks(tx: Tx, keys: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Talks with these agents in which something waits for an answer."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, talk_id, user_id in bulk.among(
        tx, "SELECT agent, talk_id, user_id FROM talks WHERE (waiting > 0 OR answer_seq > 0) AND agent <> ''"
        f" AND NOT {RESTING_TALK} AND agent IN", keys,
    ):  # fmt: skip
        found.setdefault(key, []).append((talk_id, user_id))
    return found


_WAITING = (
    f"SELECT {ENVELOPE}, attempts = 0 AND most_attempts > 1 AND NOT EXISTS"
    " (SELECT 1 FROM steps WHERE steps.envelope_id = inbox.envelope_id) AS untried FROM inbox"
)


def _hand_over(tx: Tx, keys: Sequence[str], now: float) -> dict[str, tuple[tuple[Envelope, ...], int]]:
    """What each of them is to work on, in order of urgency, and how much more there is."""
    given: dict[str, tuple[tuple[Envelope, ...], int]] = {}
    for start in range(0, len(keys), 256):
        part = keys[start : start + 256]
        rows = bulk.among(
            tx, f"{_WAITING} WHERE due <= ? AND kind <> 'talk' AND address <> '' AND address IN", part,
            f" ORDER BY address, rank, envelope_id LIMIT {TAKE + 1}", [now],
        )  # fmt: skip
        if len(rows) <= TAKE:
            given |= {key: (found, 0) for key, found in _admitted(tx, part, rows, now).items()}
        elif len(part) == 1:
            some = _with_earlier(tx, part[0], now, rows[:TAKE])
            more = max(1, _count(tx, part[0], now) - len(some))
            given |= {key: (found, more) for key, found in _admitted(tx, part, some, now).items()}
        else:  # there is too much to be handed over together
            for key in part:
                given |= _hand_over(tx, [key], now)
    untried = [e.envelope_id for envelopes, _ in given.values() for e in envelopes if e.claimed]
    bulk.change(tx, "UPDATE inbox SET attempts = 1 WHERE envelope_id IN", untried)
    return given


def _count(tx: Tx, key: str, now: float) -> int:
    row = tx.one(
        "SELECT count(*) FROM inbox WHERE due <= :now AND kind <> 'talk' AND address <> '' AND address = :address",
        {"now": now, "address": key},
    )
    return int(row[0]) if row else 0


def _admitted(tx: Tx, keys: Sequence[str], rows: Iterable[Row], now: float) -> dict[str, tuple[Envelope, ...]]:
    """All but what is in a lane behind one that waits for its next try."""
    undue = bulk.among(
        tx, "SELECT address, lane, min(envelope_id) FROM inbox WHERE due > 0 AND due > ? AND address <> ''"
        " AND address IN", keys, " GROUP BY address, lane", [now],
    )  # fmt: skip
    held: dict[tuple[str, str], str] = {(row[0], row[1]): row[2] for row in undue}
    given: dict[str, list[Envelope]] = {}
    for row in rows:
        if held.get((row[1], row[3]), row[0]) >= row[0]:
            given.setdefault(row[1], []).append(envelope_of(row, claimed=bool(row[-1])))
    return {key: tuple(envelopes) for key, envelopes in given.items()}


def _with_earlier(tx: Tx, key: str, now: float, rows: list[Row]) -> list[Row]:
    """With what comes before them in their lanes, though it is less urgent: inside a lane there is no overtaking."""
    last: dict[str, str] = {}
    for row in rows:
        if row[3] != row[0]:  # most tasks have a lane to themselves
            last[row[3]] = max(last.get(row[3], ""), row[0])
    if not last:
        return rows
    less_urgent = tx.read(
        "SELECT envelope_id, lane FROM inbox WHERE address = :address AND address <> '' AND rank >= :rank"
        " AND envelope_id < :last AND due <= :now",
        {"address": key, "rank": rows[-1][8], "last": max(last.values()), "now": now},
    )
    there = {row[0] for row in rows}
    earlier = [e for e, lane in less_urgent if e not in there and e < last.get(lane, "")]
    return [*rows, *bulk.among(tx, f"{_WAITING} WHERE envelope_id IN", earlier)]
