"""Queue of the lanes of an awake agent, in order of priority."""

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
        """Time at which its first envelope is tried again, if it failed before."""
        self.held = False
        """True if `due` is not for a retry: it waits for a quiet moment in its meeting."""
        self.repeats = 0
        """Number of repeated runs of its first envelope, because other turns had changed the same state."""
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
        """Replace the waiting envelopes by these."""
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
    def is_parked(self) -> bool:
        """Return True if its first envelope waits for a person."""
        return self.due == NEVER

    def resume(self, newer: Mapping[str, Envelope]) -> bool:
        """Resume the first envelope after a person's decision; False: it is none of these."""
        envelope = newer.get(self.waiting[0].envelope_id)
        if envelope is not None:
            self.waiting[0], self.due = envelope, 0.0
        return envelope is not None

    @property
    def rank(self) -> float:
        """Rank of its most urgent envelope."""
        return self._minima[0]


class LaneQueue:
    """Used on the agent's loop; `lanes` may be read from any thread."""

    __slots__ = ("_ready", "lanes")

    def __init__(self) -> None:
        self.lanes: dict[str, Lane] = {}
        self._ready: list[tuple[float, str, str]] = []

    def put(self, envelope: Envelope) -> None:
        lane = self.lanes.get(envelope.lane)
        if lane is None:
            lane = self.lanes[envelope.lane] = Lane(envelope.lane)
        waiting = lane.waiting
        if waiting and waiting[-1].envelope_id > envelope.envelope_id:  # from the store, and older
            begun = [waiting.popleft()] if lane.busy or lane.due else []  # an envelope that was started stays first
            lane.fill(begun + sorted([*waiting, envelope], key=lambda e: e.envelope_id))
        else:
            lane.append(envelope)
        # A lane that has become more urgent is added once more; `has_ready` skips duplicates.
        if not lane.busy and not lane.due and (len(waiting) == 1 or lane.rank == envelope.rank):
            heapq.heappush(self._ready, (envelope.rank, envelope.envelope_id, lane.name))

    def lane_of(self, task_id: str) -> Lane | None:
        """Return the lane of a task: its own, or that of its schedule."""
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
        """Return the most urgent ready lane."""
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
        """Return an upper bound of the number of ready lanes."""
        return len(self._ready)

    @property
    def is_held(self) -> bool:
        """Return True if a lane waits for a quiet moment in its meeting."""
        return any(lane.held for lane in list(self.lanes.values()))

    @property
    def all_parked(self) -> bool:
        """Return True if every lane waits for a person; also if there is none."""
        return all(lane.is_parked for lane in list(self.lanes.values()))

    @property
    def busy(self) -> int:
        """Number of lanes that are being handled."""
        return sum(lane.busy for lane in list(self.lanes.values()))

    @property
    def works(self) -> tuple[Work, ...]:
        return tuple(work for lane in list(self.lanes.values()) if (work := lane.work) is not None)

    def drop(self, envelope_id: str, *, started: bool) -> Envelope | None:
        """Remove an envelope from its lane, and return it; unless `started`, not one that is being handled."""
        for lane in list(self.lanes.values()):
            first = 0 if started else int(lane.busy)
            envelope = next((e for e in list(lane.waiting)[first:] if e.envelope_id == envelope_id), None)
            if envelope is not None:
                if lane.is_parked and lane.waiting[0] is envelope:
                    lane.due = 0.0
                lane.fill(e for e in lane.waiting if e is not envelope)
                self.offer(lane)
                return envelope
        return None

    def unstarted(self) -> list[Lane]:
        """Return the lanes that are neither busy nor delayed."""
        return [lane for lane in self.lanes.values() if not lane.busy and not lane.due]

    @property
    def suspects(self) -> list[str]:
        """Return the envelopes that may be in quarantine, or wait for it."""
        waiting = (envelope for lane in list(self.lanes.values()) for envelope in list(lane.waiting))
        return [envelope.envelope_id for envelope in waiting if envelope.suspect]

    def clear(self) -> None:
        self.lanes.clear()
        self._ready.clear()
