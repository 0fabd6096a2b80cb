"""Placement of talks on workers: each lane is on one worker at most."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from roost.core.envelopes.envelope import Envelope
from roost.core.failures.faults import Fault
from roost.core.runs import Closing, Settled
from roost.core.talks.runs import StopReason
from roost.errors import Unavailable
from roost.runtime.talks.lane import TalkLane
from roost.runtime.talks.live_talk import LiveTalk
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.talks.run import TalkRun
from roost.runtime.talks.worker import TalkLanes, Worker
from roost.runtime.turns.services import TurnServices
from roost.stores.sql import settlement

log = logging.getLogger("roost.inbox")


@dataclass(frozen=True, slots=True)
class LostLane:
    """A lane whose worker is no more, and the run that was under way there."""

    talk_id: str
    user_id: str
    run: TalkRun | None
    agent: str = ""


class _Place:
    """Worker of a lane, and the number of deliveries on their way to it."""

    __slots__ = ("underway", "user_id", "worker")

    def __init__(self, worker: TalkLanes, user_id: str) -> None:
        self.worker = worker
        self.user_id = user_id
        self.underway = 0


class Placement:
    """Hands envelopes to a worker, and keeps a lane there while it has work. Any thread may call."""

    def __init__(self, services: TurnServices, talks: LiveTalks, talks_of: Callable[[str], TalkLanes | None]) -> None:
        self._services = services
        self._context = services.context
        self._talks = talks
        self._talks_of = talks_of
        """Return the talks of an agent that is awake and begins new runs."""
        self._lock = self._context.host.lock()
        self._places: dict[str, _Place] = {}
        self.closing = False
        """True if workers drain: what is posted now waits in the store."""
        self.workers: list[Worker] = []

    def start_worker(self, name: str, ended: Callable[[Worker, BaseException | None], None]) -> None:
        self.workers.append(Worker(self._services, self._talks, name, release=self.release, ended=ended))

    def deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, agent: str = "") -> None:
        """Hand a message to the lane of its talk; None: the lane claims from the store."""
        with self._lock:
            place = self._places.get(talk_id)
            if place is None:
                worker = self._talks_of(agent) if agent else None if self.closing else self._choose_worker()
                if worker is not None:
                    place = self._places[talk_id] = _Place(worker, user_id)
            if place is not None:
                place.underway += 1
        if place is not None:
            place.worker.deliver(talk_id, user_id, envelope, partial(self._arrived, place))
        elif agent:
            self._services.notifier.look(agent)  # who wakes, if it may, and is handed its talks

    def _choose_worker(self) -> TalkLanes | None:
        """Return the worker that is just being woken, if there is one, else the least loaded.

        The talks of one commit so share a worker, one wake-up and, if they are short, the commit of their answers: that
        saves more than a quarter of the CPU time of a short turn.
        """
        now = self._context.host.clock.monotonic()
        waking = next((worker for worker in self.workers if worker.is_waking(now)), None)
        return waking or min(self.workers, key=lambda worker: worker.load, default=None)

    def stop(self, talk_id: str, why: StopReason, requested: float) -> None:
        """Fence the run of a talk at once, and have its worker end it."""
        if (place := self._places.get(talk_id)) is not None:
            if (run := self.run_of(talk_id)) is not None:
                run.fence(why, requested)
            place.worker.stop(talk_id, why, requested)

    def run_of(self, talk_id: str) -> TalkRun | None:
        """Return the run of a talk, if there is one."""
        lane = self.lane(talk_id)
        return lane.run if lane is not None else None

    def lane(self, talk_id: str) -> TalkLane | None:
        """Return the lane of a talk, while it has something to do."""
        place = self._places.get(talk_id)
        return place.worker.lanes.get(talk_id) if place is not None else None

    def holds(self, talk_id: str) -> bool:
        return talk_id in self._places

    def talk_ids(self) -> list[str]:
        return list(self._places)

    def stop_all(self) -> None:
        """End all runs, and begin no more on any worker."""
        now = self._context.host.clock.now()
        for talk_id in list(self._places):
            self.stop(talk_id, StopReason.LOST, now)
        for worker in self.workers:
            self.forget(worker, StopReason.LOST)

    def release(self, worker: TalkLanes, talk_id: str) -> bool:
        """Give the lane up, unless something is on its way to it."""
        with self._lock:
            place = self._places.get(talk_id)
            if place is None or place.worker is not worker:
                return True
            if place.underway:
                return False
            del self._places[talk_id]
            return True

    def forget(self, worker: TalkLanes, why: StopReason) -> None:
        """An agent's loop is given up: nothing that its talks still say there reaches anyone."""
        now = self._context.host.clock.now()
        with self._lock:
            worker.retired = worker.retired or why is StopReason.LOST
            for talk_id in [t for t, place in self._places.items() if place.worker is worker]:
                del self._places[talk_id]
        for lane in list(worker.lanes.values()):
            lane.ending = True
            if lane.run is not None:
                lane.run.fence(why, now)

    def lose(self, worker: TalkLanes) -> list[LostLane]:
        """Take everything from a worker that is no more. Nothing its runs still say reaches anyone."""
        with self._lock:
            worker.retired = True
            self.workers = [one for one in self.workers if one is not worker]
            places = {t: place for t, place in self._places.items() if place.worker is worker}
            for talk_id in places:
                del self._places[talk_id]
        lost, now = [], self._context.host.clock.now()
        for talk_id, place in places.items():
            self._context.quarantine.leave(talk_id)
            lane = worker.lanes.get(talk_id)
            run = lane.run if lane is not None else None
            if lane is not None:
                lane.ending = True
            if run is not None:
                run.fence(StopReason.LOST, now)
            lost.append(LostLane(talk_id, place.user_id, run, worker.agent.address if worker.agent else ""))
        return lost

    def move_all(self, lost: Iterable[LostLane], culprit: str | None, fault: Fault, *, is_known: bool = False) -> None:
        """Have lost lanes run elsewhere; the run that is known to be to blame fails instead.

        If no culprit is known, each run counts as an attempt. `is_known`: the culprit is known, and may be no run of a
        talk.
        """
        lost = list(lost)
        is_known = is_known or any(lane.run is not None and lane.run.run_id == culprit for lane in lost)
        for lane in lost:
            live = self._talks.known(lane.talk_id)
            if lane.run is None or live is None:
                self._deliver_again(lane)
            else:
                to_blame = fault if lane.run.run_id == culprit else None
                self._close(lane, live, lane.run, lane.run.lost(to_blame, tried=not is_known))

    def _close(self, lane: LostLane, live: LiveTalk, run: TalkRun, closing: Closing) -> None:
        """Close what a lost run was writing, with all that was said; then the lane runs elsewhere."""

        def written(all_settled: tuple[Settled, ...]) -> None:
            [settled] = all_settled
            if settled.talk is not None:
                live.settled(settled.talk)
            self._context.facts.count_talk(lane.user_id, closing, settled)
            moved()

        def failed(error: Exception) -> None:
            log.warning("lost run could not be closed; it is closed later: %s", error, extra={"session": lane.talk_id})
            moved()

        def moved() -> None:
            run.quiesced.set(run.stopped())
            self._deliver_again(lane)

        settle, facts = settlement.settle, partial(self._context.facts.talk_settled, lane.user_id, closing)
        try:
            self._context.store.write(settle, (closing,), key=lane.talk_id, facts=facts, then=written, failed=failed)
        except Unavailable as error:
            failed(error)

    def _deliver_again(self, lane: LostLane) -> None:
        self._services.notifier.deliver_talk(lane.talk_id, lane.user_id, None, lane.agent)

    def _arrived(self, place: _Place) -> None:
        with self._lock:
            place.underway -= 1
