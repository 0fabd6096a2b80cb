"""The desk of an agent that is awake: what it was handed, in lanes, and the lanes in order of urgency."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from roost.core.envelopes import NEVER, Envelope

if TYPE_CHECKING:
    from roost.runtime.work import Work


class Lane:
    """Envelopes that are handled one at a time and in order."""

    __slots__ = ("_minima", "busy", "due", "held", "name", "waiting", "work")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Envelope] = deque()
        self.busy = False
        self.work: Work | None = None
        self.due = 0.0
        """When its first envelope is tried again, if it failed before."""
        self.held = False
        """Whether it waits for a quiet moment instead, and nothing was tried."""
        self._minima: deque[float] = deque()

    def append(self, envelope: Envelope) -> None:
        self.waiting.append(envelope)
        minima = self._minima
        while minima and minima[-1] > envelope.rank:
            minima.pop()
        minima.append(envelope.rank)

    def popleft(self) -> Envelope:
        envelope = self.waiting.popleft()
        if self._minima and self._minima[0] == envelope.rank:
            self._minima.popleft()
        return envelope

    def fill(self, envelopes: Iterable[Envelope]) -> None:
        """These, and nothing else, wait in it."""
        kept = list(envelopes)
        self.waiting.clear()
        self._minima.clear()
        for envelope in kept:
            self.append(envelope)

    def replace(self, newer: Mapping[str, Envelope]) -> int:
        """The same envelopes as they are now, in their old places, if they were not begun there; how many are here.

        One that has been tried since it was handed over stays as it is.
        """
        found = 0
        for place, waiting in enumerate(self.waiting):
            envelope = newer.get(waiting.envelope_id)
            if envelope is None:
                continue
            found += 1
            if envelope.attempts > waiting.attempts and envelope.claimed and not (self.busy and place == 0):
                self.waiting[place] = envelope
        return found

    @property
    def rests(self) -> bool:
        """Whether its first envelope waits for a person."""
        return self.due == NEVER

    def take_up(self, newer: Mapping[str, Envelope]) -> bool:
        """The person has decided about what rests here; False: that is none of these."""
        envelope = newer.get(self.waiting[0].envelope_id)
        if envelope is not None:
            self.waiting[0], self.due = envelope, 0.0
        return envelope is not None

    @property
    def rank(self) -> float:
        """A lane is as urgent as the most urgent in it."""
        return self._minima[0]


class Desk:
    """Used on the agent's loop; `lanes` may be looked at from any thread."""

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self._ready: list[tuple[float, str, str]] = []

    def put(self, envelope: Envelope) -> None:
        lane = self.lanes.get(envelope.lane)
        if lane is None:
            lane = self.lanes[envelope.lane] = Lane(envelope.lane)
        waiting = lane.waiting
        if waiting and waiting[-1].envelope_id > envelope.envelope_id:  # from the store, and older than what came since
            begun = [waiting.popleft()] if lane.busy or lane.due else []  # what was begun stays the first
            lane.fill(begun + sorted([*waiting, envelope], key=lambda e: e.envelope_id))
        else:
            lane.append(envelope)
        # It is listed again if it has become more urgent; what is listed twice is skipped.
        if not lane.busy and not lane.due and (len(waiting) == 1 or lane.rank == envelope.rank):
            heapq.heappush(self._ready, (envelope.rank, envelope.envelope_id, lane.name))

    def offer(self, lane: Lane) -> None:
        """It may go on with what is next in it; one in which nothing waits is no more."""
        if lane.busy or lane.due:
            return
        if not lane.waiting:
            self.lanes.pop(lane.name, None)
        else:
            heapq.heappush(self._ready, (lane.rank, lane.waiting[0].envelope_id, lane.name))

    def next(self) -> Lane | None:
        """The most urgent lane that can go on."""
        if not self.has_ready():
            return None
        return self.lanes[heapq.heappop(self._ready)[2]]

    def has_ready(self) -> bool:
        while self._ready:
            lane = self.lanes.get(self._ready[0][2])
            if lane is not None and not lane.busy and lane.waiting and not lane.due:
                return True
            heapq.heappop(self._ready)
        return False

    @property
    def offered(self) -> int:
        """How many lanes can go on, at most."""
        return len(self._ready)

    @property
    def is_held(self) -> bool:
        """Whether any of them waits for a quiet moment."""
        return any(lane.held for lane in list(self.lanes.values()))

    @property
    def is_at_rest(self) -> bool:
        """Whether all there is waits for a person."""
        return all(lane.rests for lane in list(self.lanes.values()))

    @property
    def rests(self) -> bool:
        """Whether anything waits for a person."""
        return any(lane.rests for lane in list(self.lanes.values()))

    @property
    def busy(self) -> int:
        """How many lanes are being worked on."""
        return sum(lane.busy for lane in list(self.lanes.values()))

    @property
    def works(self) -> tuple[Work, ...]:
        return tuple(work for lane in list(self.lanes.values()) if (work := lane.work) is not None)

    def unbegun(self) -> list[Lane]:
        """Those of which nothing is being done, and nothing is tried again later."""
        return [lane for lane in self.lanes.values() if not lane.busy and not lane.due]

    def untried(self) -> list[Envelope]:
        """What was handed over, and counted as tried, and not begun."""
        handed: list[Envelope] = []
        for lane in list(self.lanes.values()):
            begun = int(lane.work is not None or (lane.due > 0 and not lane.held))
            handed += [envelope for envelope in list(lane.waiting)[begun:] if envelope.claimed]
        return handed

    def uncounted(self) -> set[str]:
        """What is here and whose next try is not counted yet."""
        found: set[str] = set()
        for lane in list(self.lanes.values()):
            waiting = list(lane.waiting)
            begun = int(lane.busy)  # whose try is counted, or about to be
            found |= {envelope.envelope_id for envelope in waiting[begun:] if not envelope.claimed}
            if waiting and lane.due and not lane.held:
                found.add(waiting[0].envelope_id)
        return found

    def clear(self) -> None:
        self.lanes.clear()
        self._ready.clear()
