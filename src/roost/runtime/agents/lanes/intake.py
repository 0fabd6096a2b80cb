"""Intake of an awake agent: envelopes on their way from the store into its lanes."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope
from roost.runtime.agents.lanes.lane_queue import LaneQueue


class Intake:
    """`put`, `depth`, `is_full` and `has_started` are for any thread; everything else happens on the agent's loop."""

    __slots__ = ("_arriving", "_is_looking", "_is_posted_again", "_lane_queue", "_left_in_store", "known")

    def __init__(self, lane_queue: LaneQueue) -> None:
        self._lane_queue = lane_queue
        self._arriving: list[tuple[Envelope, ...]] = []
        self.known: set[str] = set()
        """Ids of envelopes that are in a lane, or whose closing is being written."""
        self._left_in_store = 0
        """Number of envelopes in the store for which there was no room, as far as it is known."""
        self._is_looking = False
        """True if the store is being asked for more."""
        self._is_posted_again = False
        """True if an envelope arrived again while its closing is written: the store is asked for it after that."""

    def put(self, envelopes: tuple[Envelope, ...]) -> None:
        self._arriving.append(envelopes)

    @property
    def depth(self) -> int:
        """Number of envelopes that the agent has to handle or to settle; one that arrives again counts twice."""
        return len(self.known) + sum(map(len, self._arriving)) + self._left_in_store

    def is_full(self, limit: int) -> bool:
        """Return True if the agent has as many envelopes to handle or to settle; each counts once."""
        if self.depth < limit:
            return False
        arriving = {envelope.envelope_id for envelopes in tuple(self._arriving) for envelope in envelopes}
        new = sum(one not in self.known for one in arriving)
        return len(self.known) + new + self._left_in_store >= limit

    def has_started(self, task_id: str) -> bool:
        """Return True if this task runs or is tried again later, or its closing is being written."""
        if task_id not in self.known:
            return False
        lane = self._lane_queue.lane_of(task_id)
        return lane is None or (lane.begins_with(task_id) and (lane.busy or lane.due > 0))

    def accept(self, *, claimed: bool, left: int, most: int) -> None:
        """Put the oldest arrived envelopes into lanes, up to `most` in RAM; the others stay in the store.

        Envelopes `claimed` from the store come first, and `left` of them are still there. Envelopes that were posted
        since are ordered after those.
        """
        envelopes = self._arriving.pop(0)
        if claimed:
            self._left_in_store, self._is_looking = left, False
        elif self._left_in_store or len(self.known) + len(envelopes) > most:
            self._left_in_store += len(envelopes)
            return
        again: dict[str, dict[str, Envelope]] = {}
        for envelope in envelopes:
            if envelope.envelope_id in self.known:
                again.setdefault(envelope.lane, {})[envelope.envelope_id] = envelope
                continue
            self.known.add(envelope.envelope_id)
            self._lane_queue.put(envelope)
        for name, newer in again.items():
            self._accept_again(name, newer)

    def _accept_again(self, name: str, newer: dict[str, Envelope]) -> None:
        """Resume a parked lane; if the envelopes are in no lane any more, their closings are being written.

        Envelopes that are in the store after that were posted anew.
        """
        lane = self._lane_queue.lanes.get(name)
        if lane is not None and lane.is_parked and lane.resume(newer):
            self._lane_queue.offer(lane)
        if lane is None or not lane.holds(newer):
            self._is_posted_again = True

    @property
    def has_more(self) -> bool:
        """Return True if there are envelopes in the store for which there was no room."""
        return self._left_in_store > 0

    def expect_more(self) -> None:
        """Order envelopes that arrive from now on after those in the store, which is asked for them."""
        self._left_in_store = max(self._left_in_store, 1)
        self._is_looking = True

    def take_missed(self) -> bool:
        """Return True if the store has to be asked for envelopes that are not here."""
        missed = (self.has_more and not self._is_looking) or self._is_posted_again
        self._is_posted_again = False
        return missed
