"""Invariants of every simulation, whatever faults it had: call them after it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any, Protocol

from roost.core.meetings.log.entries import Entry, from_json
from roost.core.meetings.log.log import Log
from roost.core.meetings.view.fold import fold
from roost.core.meetings.view.view import View
from roost.testing.brains import Given
from roost.testing.simulation import Simulation


class End(StrEnum):
    """Final state of an envelope. LOST is never allowed."""

    DONE = "done"
    DEAD = "dead"
    CANCELLED = "cancelled"
    WAITING = "waiting"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class Fate:
    """History of one envelope of an agent, from posting to its end."""

    envelope_id: str
    address: str
    """Agent that received it: `ann/d`."""
    kind: str
    lane: str
    sender: str
    body: str
    posted: int
    """Its position among all posted envelopes."""
    times: int
    """Number of times it was posted."""
    end: End
    tries: tuple[Given, ...]
    handled: int | None
    """Position of the attempt that ended it among all turns."""

    def __str__(self) -> str:
        return f"{self.kind} {self.envelope_id} from {self.sender} to {self.address}: {self.body!r:.60}"


def fates(simulation: Simulation) -> list[Fate]:
    """Return the history of every envelope of an agent, in order."""
    tries: dict[str, list[tuple[int, Given]]] = defaultdict(list)
    for number, given in enumerate(simulation.turns):
        tries[given.envelope_id or ""].append((number, given))
    posted: dict[str, tuple[Any, ...]] = {}
    times: Counter[str] = Counter()
    gone: dict[str, int] = {}
    for what, turns, *row in simulation.rows(
        "SELECT what, turns, envelope_id, address, kind, lane, sender, body, number FROM simulated_journal"
        " WHERE kind <> 'talk' ORDER BY number"
    ):
        if what == "gone":
            gone[row[0]] = turns
        else:
            posted.setdefault(row[0], tuple(row))
            times[row[0]] += 1
    end_of = _ends(simulation)
    return [
        Fate(
            *row,
            times=times[name],
            end=end_of(row, tries[name]),
            tries=tuple(given for _, given in tries[name]),
            handled=max((number for number, _ in tries[name] if number < gone.get(name, 0)), default=None),
        )  # type: ignore[misc]
        for name, row in posted.items()
    ]


def nothing_lost(simulation: Simulation) -> None:
    """Check that each envelope was done, buried, cancelled, or is pending, and that its task or mail agrees."""
    lost = [fate for fate in fates(simulation) if fate.end is End.LOST]
    hold(simulation, not lost, "these envelopes are gone without being handled", lost)


def nothing_twice(simulation: Simulation) -> None:
    """Check that no envelope was posted twice, by id and by content, and no mail was sent twice.

    Brains must therefore send unique texts. Ticks of schedules may be alike.
    """
    found = fates(simulation)
    twice = [fate for fate in found if fate.times > 1 and fate.end is not End.DEAD]
    hold(simulation, not twice, "these were posted twice", twice)
    said = Counter(
        (f.sender, f.address, f.kind, f.body)
        for f in found
        if not f.sender.startswith("schedule:") and f.kind != "meeting"
    )
    mail = Counter(simulation.rows("SELECT sender, recipient, subject, body FROM mail"))
    doubled = [key for key, count in (said + mail).items() if count > 1]
    hold(simulation, not doubled, "these were sent twice", doubled)


def in_order(simulation: Simulation) -> None:
    """Check that envelopes of a lane were handled in the order in which they were posted.

    Does not hold if notifications are lost or delayed, also after a commit of unknown outcome: a later envelope may
    then be delivered and handled first.
    """
    lanes: dict[tuple[str, str], list[Fate]] = defaultdict(list)
    for fate in fates(simulation):
        if fate.handled is not None and fate.end is End.DONE:
            lanes[fate.address, fate.lane].append(fate)
    wrong = [
        f"{later} before {earlier}"
        for lane in lanes.values()
        for earlier, later in pairwise(lane)
        if earlier.envelope_id < later.envelope_id and (earlier.handled or 0) > (later.handled or 0)
    ]
    hold(simulation, not wrong, "these overtook", wrong)


def all_ended(simulation: Simulation, *allowed: End) -> None:
    """Check that each envelope ended in one of these states; in any but LOST if none is named."""
    ends = allowed or tuple(end for end in End if end is not End.LOST)
    others = [f"{fate.end}: {fate}" for fate in fates(simulation) if fate.end not in ends]
    hold(simulation, not others, f"these did not end as {' or '.join(ends)}", others)


def meetings_agree(simulation: Simulation) -> None:
    """Check that all participants of a meeting have the same view: members, posts, rejections, state and end.

    Views converge some time after the last fault, when lost posts were requested again: run the simulation until then.
    """
    for meeting, views in meeting_views(simulation).items():
        most = max(views.values(), key=lambda view: sum(view.seen.values()))
        present = {who: view for who, view in views.items() if most.is_in(who)}
        differ = [who for who, view in present.items() if view != next(iter(present.values()))]
        hold(simulation, not differ, f"these see the meeting {meeting} differently", [*present] if differ else ())


class Rows(Protocol):
    """Store whose rows can be read: a simulation, for example."""

    def rows(self, sql: str, /) -> list[tuple[Any, ...]]: ...


def meeting_views(store: Rows) -> dict[str, dict[str, View]]:
    """Return the view of each participant of each meeting."""
    logs: dict[tuple[str, str, str], list[Entry]] = defaultdict(list)
    for meeting, participant, creator, entry in store.rows(
        "SELECT m.meeting_id, m.participant, m.creator, l.entry FROM meetings m JOIN meeting_log l"
        " ON l.participant = m.participant AND l.meeting_id = m.meeting_id ORDER BY 1, 2, 3, 4"
    ):
        logs[meeting, participant, creator].append(from_json(entry))
    found: dict[str, dict[str, View]] = defaultdict(dict)
    for (meeting, participant, creator), entries in logs.items():
        found[meeting][participant] = fold(Log(meeting, creator).added(*entries))
    return found


def all_invariants(simulation: Simulation) -> None:
    """Check all invariants that hold under the faults of the simulation."""
    nothing_lost(simulation)
    nothing_twice(simulation)
    faults = simulation.faults
    if not (faults.handover_lost or faults.handover_delayed or faults.commit_unknown):
        in_order(simulation)


# --- inside ----------------------------------------------------------------------------------------


def _ends(simulation: Simulation) -> Callable[[tuple[Any, ...], list[tuple[int, Given]]], End]:
    waiting = {name for (name,) in simulation.rows("SELECT envelope_id FROM inbox")}
    dead = {name for (name,) in simulation.rows("SELECT envelope_id FROM dead_letters")}
    agents = {address for (address,) in simulation.rows("SELECT address FROM agents")}
    tasks: dict[str, str] = dict(simulation.rows("SELECT task_id, status FROM tasks"))
    mail: dict[str, float | None] = dict(simulation.rows("SELECT mail_id, processed FROM mail"))

    def end_of(row: tuple[Any, ...], tries: list[tuple[int, Given]]) -> End:
        name, address, kind = row[:3]
        if name in waiting:
            return End.WAITING
        if name in dead:
            return End.DEAD
        if address not in agents or tasks.get(name) == "cancelled":
            return End.CANCELLED
        if kind == "meeting":  # no brain runs for posts, and for turns without anything to react to
            return End.DONE
        is_done = tasks.get(name, "done") == "done" and (kind != "mail" or mail.get(name) is not None)
        return End.DONE if is_done and any(given.ended for _, given in tries) else End.LOST

    return end_of


def hold(simulation: Simulation, holds: bool, what: str, which: Iterable[object]) -> None:
    if not holds:
        named = [str(item) for item in which]
        shown = "\n  ".join(named[:10])
        raise simulation.explain(AssertionError(f"{what} ({len(named)}):\n  {shown}"))
