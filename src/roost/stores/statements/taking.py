"""Taking: what agents have to do is handed over to whoever works for them here, for many agents at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from roost.core import wake
from roost.core.agents import State
from roost.core.envelopes import Change, Envelope, Kind, Taken
from roost.core.priority import Priority
from roost.ports import Look, Row, Tx, World
from roost.stores.statements import bulk, mail
from roost.stores.statements.envelopes import ENVELOPE, envelope_of
from roost.stores.statements.sleep import wake_up

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
    woken = {look.address: _wake(tx, found[look.address], look, world) for look in looks if look.address in found}
    ready = {key for key, reason in woken.items() if _may_work(found[key], reason)}
    anew = {look.address for look in looks if look.anew} & ready
    bulk.change(tx, "UPDATE agents SET epoch = epoch + 1 WHERE address IN", sorted(anew))
    envelopes = _hand_over(tx, sorted(ready), world.time)
    talks = _talks(tx, sorted(ready))
    taken = []
    for look in looks:
        key = look.address
        if key not in ready:
            taken.append(Taken(key, found=key in found, ready=False))
            continue
        _, _, _, config, epoch, memory, errors, _ = found[key]
        given, more = envelopes.get(key, ((), False))
        taken.append(
            Taken(
                key, True, True, config, epoch + int(key in anew), memory, errors, given, tuple(talks.get(key, ())),
                more, woken[key], key in anew,
            )
        )  # fmt: skip
    return tuple(taken)


def _wake(tx: Tx, agent: Row, look: Look, world: World) -> str | None:
    """Why it wakes now, if it sleeps and anything that is there wakes it."""
    key, state, paused, condition = agent[0], agent[1], agent[2], agent[7]
    if state != State.SLEEPING or paused:
        return None
    reason = _reason_to_wake(tx, key, wake.from_json(condition), world)
    if reason is not None:
        mail.check(tx, key, world.time)  # one who wakes looks at the mail
        wake_up(tx, key, Change(look.change_id, world.time, State.SLEEPING, State.IDLE, reason, "roost"))
    return reason


def _may_work(agent: Row, woken: str | None) -> bool:
    return not agent[2] and (agent[1] == State.IDLE or woken is not None)


def _reason_to_wake(tx: Tx, key: str, condition: wake.Condition, world: World) -> str | None:
    """Whatever came while it slept, or just before, is still in its inbox: so the inbox decides."""
    condition = wake.passed(condition, world.time)
    rows = tx.read(
        "SELECT kind, CASE WHEN kind = 'event' THEN lane ELSE '' END AS what, priority, min(rank) AS first FROM inbox"
        " WHERE address = :address AND address <> '' AND kind IN ('talk', 'event', 'mail')"
        " GROUP BY 1, 2, 3 ORDER BY 4",
        {"address": key},
    )
    for kind, lane, priority, _ in rows:
        if kind == Kind.TALK:
            return "talk"
        if kind == Kind.EVENT:
            name = lane.removeprefix("event:")
            if priority == Priority.URGENT:
                return f"event {name}"
            condition = wake.heard(condition, name)
        elif kind == Kind.MAIL:
            condition = wake.got_mail(condition, Priority(priority))
    if wake.is_met(condition, cpu=world.cpu, awake=world.awake):
        return wake.reason(condition, cpu=world.cpu, awake=world.awake)
    return None


def _talks(tx: Tx, keys: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Talks with these agents in which something waits for an answer."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, talk_id, user_id in bulk.among(
        tx, "SELECT agent, talk_id, user_id FROM talks WHERE (waiting > 0 OR answer_seq > 0) AND agent <> ''"
        " AND agent IN", keys,
    ):  # fmt: skip
        found.setdefault(key, []).append((talk_id, user_id))
    return found


_WAITING = (
    f"SELECT {ENVELOPE}, attempts = 0 AND NOT EXISTS"
    " (SELECT 1 FROM steps WHERE steps.envelope_id = inbox.envelope_id) AS untried FROM inbox"
)


def _hand_over(tx: Tx, keys: Sequence[str], now: float) -> dict[str, tuple[tuple[Envelope, ...], bool]]:
    """What each of them is to work on, in order of urgency, and whether there is more."""
    given: dict[str, tuple[tuple[Envelope, ...], bool]] = {}
    for start in range(0, len(keys), 256):
        part = keys[start : start + 256]
        rows = bulk.among(
            tx, f"{_WAITING} WHERE due <= ? AND kind <> 'talk' AND address <> '' AND address IN", part,
            f" ORDER BY address, rank, envelope_id LIMIT {TAKE + 1}", [now],
        )  # fmt: skip
        if len(rows) <= TAKE:
            given |= {key: (found, False) for key, found in _admitted(tx, part, rows, now).items()}
        elif len(part) == 1:
            some = _with_earlier(tx, part[0], now, rows[:TAKE])
            given |= {key: (found, True) for key, found in _admitted(tx, part, some, now).items()}
        else:  # there is too much to be handed over together
            for key in part:
                given |= _hand_over(tx, [key], now)
    untried = [e.envelope_id for envelopes, _ in given.values() for e in envelopes if e.claimed]
    bulk.change(tx, "UPDATE inbox SET attempts = 1 WHERE envelope_id IN", untried)
    return given


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
