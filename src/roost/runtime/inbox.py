"""Which worker has which lane: one at the most. What was committed is handed over from here."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from roost.core.runs import Envelope, Why
from roost.runtime.lanes import Lane
from roost.runtime.runner import Run
from roost.runtime.shop import Shop
from roost.runtime.worker import TalkLanes, Worker

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.inbox")


@dataclass(frozen=True, slots=True)
class LostLane:
    """A lane whose worker is no more, and the run that was under way there."""

    talk_id: str
    user_id: str
    run: Run | None


class _Place:
    """Where a lane is, and how many deliveries are on their way to it."""

    __slots__ = ("underway", "user_id", "worker")

    def __init__(self, worker: TalkLanes, user_id: str) -> None:
        self.worker = worker
        self.user_id = user_id
        self.underway = 0


class Inbox:
    """Hands envelopes to the least loaded worker, and keeps a lane there while it has work. Any thread may call."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        hall.inbox = self
        self._lock = shop.host.lock()
        self._places: dict[str, _Place] = {}
        self.workers: list[Worker] = []

    def deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, agent: str = "") -> None:
        """None: look into the store what there is. With nobody to take it, it stays in the store."""
        with self._lock:
            place = self._places.get(talk_id)
            if place is None:
                worker = self._agent_of(agent) if agent else self._least_loaded()
                if worker is not None:
                    place = self._places[talk_id] = _Place(worker, user_id)
            if place is not None:
                place.underway += 1
        if place is not None:
            place.worker.deliver(talk_id, user_id, envelope, partial(self._arrived, place))
        elif agent:
            self._hall.look(agent)  # who wakes, if it may, and is handed its talks

    def _least_loaded(self) -> TalkLanes | None:
        return min(self.workers, key=lambda w: w.load) if self.workers else None

    def _agent_of(self, agent: str) -> TalkLanes | None:
        awake = self._hall.awake(agent)
        return None if awake is None or awake.ending else awake.talks

    def stop(self, talk_id: str, why: Why, requested: float) -> Run | None:
        """Fence the run under way at once, and have its worker end it. That run, if there is one."""
        place = self._places.get(talk_id)
        if place is None:
            return None
        lane = place.worker.lanes.get(talk_id)
        run = lane.run if lane is not None else None
        if run is not None:
            run.fence(why, requested)
        place.worker.stop(talk_id, why, requested)
        return run

    def lane(self, talk_id: str) -> Lane | None:
        """The lane of a talk, while it has something to do."""
        place = self._places.get(talk_id)
        return place.worker.lanes.get(talk_id) if place is not None else None

    def holds(self, talk_id: str) -> bool:
        return talk_id in self._places

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

    def forget(self, worker: TalkLanes, why: Why) -> None:
        """An agent's loop is given up: nothing that its talks still say there reaches anyone."""
        now = self._shop.host.clock.now()
        with self._lock:
            worker.retired = worker.retired or why is Why.LOST
            for talk_id in [t for t, place in self._places.items() if place.worker is worker]:
                del self._places[talk_id]
        for lane in list(worker.lanes.values()):
            lane.ending = True
            if lane.run is not None:
                lane.run.fence(why, now)

    def lose(self, worker: Worker) -> list[LostLane]:
        """Take everything from a worker that is no more. Nothing its runs still say reaches anyone."""
        with self._lock:
            worker.retired = True
            if worker in self.workers:
                self.workers.remove(worker)
            places = {t: place for t, place in self._places.items() if place.worker is worker}
            for talk_id in places:
                del self._places[talk_id]
        lost, now = [], self._shop.host.clock.now()
        for talk_id, place in places.items():
            lane = worker.lanes.get(talk_id)
            run = lane.run if lane is not None else None
            if lane is not None:
                lane.ending = True
            if run is not None:
                run.fence(Why.LOST, now)
            lost.append(LostLane(talk_id, place.user_id, run))
        return lost

    def _arrived(self, place: _Place) -> None:
        with self._lock:
            place.underway -= 1
