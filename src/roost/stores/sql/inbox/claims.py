"""Claims: hand over envelopes to the activations of many agents at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from roost.core.agents import wake
from roost.core.agents.agent import AgentConfig, State
from roost.core.envelopes.claims import ClaimedWork
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.outcomes import StateChange
from roost.core.values.priority import Priority
from roost.ports import ClaimEnvironment, ClaimRequest, Row, Tx
from roost.stores import bulk, locking
from roost.stores.sql import mail
from roost.stores.sql.sleep.conditions import latch, wake_up
from roost.stores.sql.tables.disabled import is_disabled
from roost.stores.sql.tables.envelopes import ENVELOPE, envelope_of
from roost.stores.sql.tables.owners import is_own
from roost.stores.sql.tables.parked import PARKED, PARKED_TALK

MOST = 1_000
"""Largest number of envelopes handed over to an agent at once."""


@locking.locks(lambda tx, requests, environment: [locking.agent(request.address) for request in requests])
def claim(tx: Tx, requests: tuple[ClaimRequest, ...], environment: ClaimEnvironment) -> tuple[ClaimedWork, ...]:
    """Claim the work of agents: wake those whose condition is met, and return their envelopes.

    With `is_new` a previous activation can no longer write. Agents with a profile that is unknown here, and those of
    disabled users, are unchanged, and so are those of other nodes, whose `owner` is named.
    """
    rows = bulk.read(
        tx,
        f"SELECT address, state, paused, config, epoch, memory, errors, wake, {is_disabled('agents.user_id')}, node"
        " FROM agents WHERE address IN",
        sorted(request.address for request in requests),
        f" ORDER BY address{tx.for_update}",
    )
    found: dict[str, Row] = {row[0]: row for row in rows if not row[8] and is_own(tx, row[9])}
    elsewhere = {row[0]: row[9] for row in rows if not is_own(tx, row[9])}
    missing = _missing(found, requests, environment)
    known = [request for request in requests if request.address in found and request.address not in missing]
    woken = _wake(tx, [found[request.address] for request in known], environment)
    runnable = {key for key, row in found.items() if not row[2] and key not in missing}
    ready = {key for key in runnable if found[key][1] == State.IDLE or key in woken}
    activated = {request.address for request in requests if request.is_new} & ready
    bulk.write(tx, "UPDATE agents SET epoch = epoch + 1, node = ? WHERE address IN", sorted(activated), "", (tx.node,))
    if tx.node and missing:  # a node that knows the profile can take them then
        bulk.write(tx, "UPDATE agents SET node = '' WHERE node = ? AND address IN", sorted(missing), "", (tx.node,))
    envelopes = _hand_over(tx, sorted(ready), environment.time)
    waiting = {key for key in missing if not found[key][2] and found[key][1] != State.STOPPED}
    talks = _talks(tx, sorted(ready | waiting))
    claimed = []
    for request in requests:
        key = request.address
        if key not in ready:
            open_talks, missing_profile = tuple(talks.get(key, ())), missing.get(key, "")
            owner = elsewhere.get(key, "")
            claimed.append(
                ClaimedWork(key, key in found, ready=False, talks=open_talks, missing=missing_profile, owner=owner)
            )
            continue
        _, _, _, config, epoch, state, errors, *_ = found[key]
        handed_over, more = envelopes.get(key, ((), 0))
        claimed.append(
            ClaimedWork(
                key,
                True,
                True,
                config,
                epoch + int(key in activated),
                state,
                errors,
                handed_over,
                tuple(talks.get(key, ())),
                more,
                woken.get(key),
                key in activated,
            )
        )
    return tuple(claimed)


def _missing(
    found: Mapping[str, Row], requests: Iterable[ClaimRequest], environment: ClaimEnvironment
) -> dict[str, str]:
    """Return agents with an unknown profile, and the profile. They and their timers stay unchanged."""
    profiles = {
        request.address: AgentConfig.from_json(found[request.address][3]).profile
        for request in requests
        if request.is_new and request.address in found  # an awake agent is already running
    }
    return {key: profile for key, profile in profiles.items() if profile and not environment.knows(profile)}


def _wake(tx: Tx, agents: Sequence[Row], environment: ClaimEnvironment) -> dict[str, str]:
    """Wake sleeping agents whose condition is met; return the reasons."""
    asleep = {row[0]: wake.from_json(row[7]) for row in agents if row[1] == State.SLEEPING}
    paused = {row[0] for row in agents if row[2]}
    received = _received(tx, sorted(asleep))
    latched = {key: _latched(wanted, received.get(key, ()), environment.time) for key, wanted in asleep.items()}
    reasons = {key: _reason(latched[key], received.get(key, ()), environment) for key in asleep if key not in paused}
    woken = {key: reason for key, reason in reasons.items() if reason is not None}
    still_asleep = [(key, before, latched[key]) for key, before in asleep.items() if key not in woken]
    latch(tx, [(key, before, after) for key, before, after in still_asleep if after is not before])
    mail.check(tx, sorted(woken), environment.time)  # an agent that wakes checks its mail
    wake_up(tx, [(key, _wake_change(reason, environment)) for key, reason in woken.items()])
    return woken


def _wake_change(reason: str, environment: ClaimEnvironment) -> StateChange:
    return StateChange(environment.new_id(), environment.time, State.SLEEPING, State.IDLE, reason, "roost")


def _received(tx: Tx, keys: Sequence[str]) -> dict[str, list[Row]]:
    """Return what each agent received while asleep or just before; it is still in the inbox."""
    found: dict[str, list[Row]] = {}
    for row in bulk.read(
        tx,
        "SELECT address, kind, CASE WHEN kind = 'event' THEN lane ELSE '' END AS what, priority, min(rank) AS first"
        f" FROM inbox WHERE kind IN ('talk', 'event', 'mail', 'meeting') AND NOT {PARKED} AND address <> ''"
        " AND address IN",
        keys,
        " GROUP BY 1, 2, 3, 4 ORDER BY 5",
    ):
        found.setdefault(row[0], []).append(row)
    return found


def _latched(wanted: wake.Condition, received: Iterable[Row], now: float) -> wake.Condition:
    """Return the condition after everything that has happened; the same object if nothing of it has."""
    condition = wake.passed(wanted, now)
    for _, kind, lane, priority, _ in received:
        if kind == Kind.EVENT:
            condition = wake.heard(condition, lane.removeprefix("event:"))
        elif kind in (Kind.MAIL, Kind.MEETING):  # meeting posts wake like mail
            condition = wake.got_mail(condition, Priority(priority))
    return condition


def _reason(condition: wake.Condition, received: Iterable[Row], environment: ClaimEnvironment) -> str | None:
    for _, kind, lane, priority, _ in received:
        if kind == Kind.TALK:
            return "talk"
        if kind == Kind.EVENT and priority == Priority.URGENT:
            return f"event {lane.removeprefix('event:')}"
    return wake.reason(condition, cpu=environment.cpu, awake=environment.awake) or None


def _talks(tx: Tx, keys: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Return talks with these agents in which a message waits for an answer."""
    found: dict[str, list[tuple[str, str]]] = {}
    for key, talk_id, user_id in bulk.read(
        tx,
        "SELECT agent, talk_id, user_id FROM talks WHERE (waiting > 0 OR answer_seq > 0) AND agent <> ''"
        f" AND NOT {PARKED_TALK} AND agent IN",
        keys,
    ):
        found.setdefault(key, []).append((talk_id, user_id))
    return found


_DUE = f"due <= {{}} AND NOT {PARKED}"
_OF_BATCH = (
    "SELECT address, lane, envelope_id FROM batch CROSS JOIN inbox WHERE address = batch.agent AND address <> ''"
)
_HELD = (
    f"SELECT address, lane, min(envelope_id) FROM ({_OF_BATCH} AND due > 0 AND due > batch.time"
    f" UNION ALL {_OF_BATCH} AND {PARKED}) AS held GROUP BY address, lane"
)
_WAITING = (
    f"SELECT {ENVELOPE}, EXISTS (SELECT 1 FROM steps WHERE steps.envelope_id = inbox.envelope_id) AS journaled"
    " FROM inbox"
)


def _hand_over(tx: Tx, keys: Sequence[str], now: float) -> dict[str, tuple[tuple[Envelope, ...], int]]:
    """Return the envelopes of each agent, in order of urgency, and how many more there are."""
    handed_over: dict[str, tuple[tuple[Envelope, ...], int]] = {}
    for start in range(0, len(keys), 256):
        part = keys[start : start + 256]
        rows = bulk.read(
            tx,
            f"{_WAITING} WHERE {_DUE.format('?')} AND kind <> 'talk' AND address <> '' AND address IN",
            part,
            f" ORDER BY address, rank, envelope_id LIMIT {MOST + 1}",
            [now],
        )
        if len(rows) <= MOST:
            handed_over |= {key: (found, 0) for key, found in _admitted(tx, part, rows, now).items()}
        elif len(part) == 1:
            chosen = _with_earlier(tx, part[0], now, rows[:MOST])
            more = max(1, _count(tx, part[0], now) - len(chosen))
            handed_over |= {key: (found, more) for key, found in _admitted(tx, part, chosen, now).items()}
        else:  # too many for one hand-over
            for key in part:
                handed_over |= _hand_over(tx, [key], now)
    return handed_over


def _count(tx: Tx, key: str, now: float) -> int:
    row = tx.one(
        f"SELECT count(*) FROM inbox WHERE {_DUE.format(':now')} AND kind <> 'talk' AND address <> ''"
        " AND address = :address",
        {"now": now, "address": key},
    )
    return int(row[0]) if row else 0


def _admitted(tx: Tx, keys: Sequence[str], rows: Iterable[Row], now: float) -> dict[str, tuple[Envelope, ...]]:
    """Return the envelopes, without those behind a parked or delayed envelope of their lane."""
    held_rows = bulk.with_batch(tx, _HELD, {"agent": "TEXT", "time": "DOUBLE PRECISION"}, [(key, now) for key in keys])
    held: dict[tuple[str, str], str] = {(row[0], row[1]): row[2] for row in held_rows}
    admitted: dict[str, list[Envelope]] = {}
    for row in rows:
        if held.get((row[1], row[3]), row[0]) >= row[0]:
            admitted.setdefault(row[1], []).append(envelope_of(row, journaled=bool(row[-1])))
    return {key: tuple(envelopes) for key, envelopes in admitted.items()}


def _with_earlier(tx: Tx, key: str, now: float, rows: list[Row]) -> list[Row]:
    """Add the envelopes before them in their lanes, even less urgent ones, since a lane keeps its order."""
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
    known = {row[0] for row in rows}
    earlier = [e for e, lane in less_urgent if e not in known and e < last.get(lane, "")]
    return [*rows, *bulk.read(tx, f"{_WAITING} WHERE envelope_id IN", earlier)]
