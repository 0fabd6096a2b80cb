"""The desk of an agent that is awake: what it was handed, in lanes, and the lanes in order of urgency."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable, Mapping

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.lanes import is_tick_lane
from roost.core.envelopes.outcomes import NEVER
from roost.runtime.agents.work import Work


class Lane:
    """Envelopes that are handled one at a time and in order."""

    __slots__ = ("_minima", "busy", "due", "held", "name", "repeats", "waiting", "work")

    def __init__(self, name: str) -> None:
        self.name = name
        self.waiting: deque[Envelope] = deque()
        self.busy = False
        self.work: Work | None = None
        self.due = 0.0
        """When its first envelope is tried again, if it failed before."""
        self.held = False
        """True if it waits for a quiet moment instead, and nothing was tried."""
        self.repeats = 0
        """How often the turn on its first envelope had to run again, since others had changed the same memory."""
        self._minima: deque[float] = deque()

    def append(self, envelope: Envelope) -> None:
        self.waiting.append(envelope)
        minima = self._minima
        while minima and minima[-1] > envelope.rank:
            minima.pop()
        minima.append(envelope.rank)

    def popleft(self) -> Envelope:
        self.repeats = 0
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

    def holds(self, envelopes: Mapping[str, Envelope]) -> bool:
        """Return True if all of these are here."""
        return sum(waiting.envelope_id in envelopes for waiting in self.waiting) == len(envelopes)

    def begins_with(self, envelope_id: str) -> bool:
        first = next(iter(list(self.waiting)), None)
        return first is not None and first.envelope_id == envelope_id

    @property
    def rests(self) -> bool:
        """Return True if its first envelope waits for a person."""
        return self.due == NEVER

    def take_up(self, newer: Mapping[str, Envelope]) -> bool:
        """Resume the first envelope after a person's decision; False: it is none of these."""
        envelope = newer.get(self.waiting[0].envelope_id)
        if envelope is not None:
            self.waiting[0], self.due = envelope, 0.0
        return envelope is not None

    @property
    def rank(self) -> float:
        """A lane is as urgent as the most urgent in it."""
        return self._minima[0]


class LaneQueue:
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

    def lane_of(self, task_id: str) -> Lane | None:
        """Return the lane that a task is in: one to itself, or that of its schedule."""
        if (own := self.lanes.get(task_id)) is not None:
            return own
        ticks = (lane for lane in list(self.lanes.values()) if is_tick_lane(lane.name))
        return next((lane for lane in ticks if any(e.envelope_id == task_id for e in list(lane.waiting))), None)

    def offer(self, lane: Lane) -> None:
        """Make the lane ready if it has a next envelope; drop it if it is empty."""
        if lane.busy or lane.due:
            return
        if not lane.waiting:
            self.lanes.pop(lane.name, None)
        else:
            heapq.heappush(self._ready, (lane.rank, lane.waiting[0].envelope_id, lane.name))

    def next(self) -> Lane | None:
        """Return the most urgent lane that can go on."""
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
        """Return the number of ready lanes, at most."""
        return len(self._ready)

    @property
    def is_held(self) -> bool:
        """Return True if any of them waits for a quiet moment."""
        return any(lane.held for lane in list(self.lanes.values()))

    @property
    def is_at_rest(self) -> bool:
        """Return True if all there is waits for a person."""
        return all(lane.rests for lane in list(self.lanes.values()))

    @property
    def rests(self) -> bool:
        """Return True if anything waits for a person."""
        return any(lane.rests for lane in list(self.lanes.values()))

    @property
    def busy(self) -> int:
        """Return how many lanes are being worked on."""
        return sum(lane.busy for lane in list(self.lanes.values()))

    @property
    def works(self) -> tuple[Work, ...]:
        return tuple(work for lane in list(self.lanes.values()) if (work := lane.work) is not None)

    def unbegun(self) -> list[Lane]:
        """Return the lanes that are neither busy nor delayed."""
        return [lane for lane in self.lanes.values() if not lane.busy and not lane.due]

    @property
    def suspects(self) -> list[str]:
        """Return those that may be in quarantine, or wait for it."""
        waiting = (envelope for lane in list(self.lanes.values()) for envelope in list(lane.waiting))
        return [envelope.envelope_id for envelope in waiting if envelope.suspect]

    def clear(self) -> None:
        self.lanes.clear()
        self._ready.clear()
