"""A worker: one thread with one loop, on which many lanes run side by side."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from functools import partial

from roost.core.envelopes.envelope import Envelope
from roost.core.talks.runs import StopReason
from roost.ports import Loop
from roost.runtime.talks.lane import TalkLane
from roost.runtime.talks.live_talks import LiveTalks
from roost.runtime.turns.owner import TurnOwner
from roost.runtime.turns.services import TurnServices

log = logging.getLogger("roost.worker")

RESTART = 0.5
"""Seconds before a lane that failed, which none should, is tried again."""


class TalkLanes(ABC):
    """The talks that run on one loop: a worker's, or that of an agent that is awake.

    `deliver` and `stop` may be called from any thread; everything else happens on the loop.
    """

    loop: Loop

    def __init__(
        self, services: TurnServices, talks: LiveTalks, name: str, release: Callable[[TalkLanes, str], bool]
    ) -> None:
        self._services = services
        self._context = services.context
        self._talks = talks
        self.name = name
        self.lanes: dict[str, TalkLane] = {}
        self._release = release
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing = False
        self.home: TurnOwner | None = None
        """The agent whose talks these are."""
        self.retired = False
        """Given up: what it still does counts for nothing."""

    @property
    def running(self) -> int:
        """Number of runs under way."""
        return sum(lane.run is not None for lane in self.lanes.values())

    @abstractmethod
    def post(self, act: Callable[[], None]) -> None:
        """Do it on the loop, in order; from any thread."""

    def deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, arrived: Callable[[], None]) -> None:
        self.post(partial(self._deliver, talk_id, user_id, envelope, arrived))

    def stop(self, talk_id: str, why: StopReason, requested: float) -> None:
        self.post(partial(self._stop, talk_id, why, requested))

    # --- on the loop -----------------------------------------------------------------------------

    def _deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, arrived: Callable[[], None]) -> None:
        arrived()
        if self.retired:
            return  # it is someone else's now, and so is whatever was on its way here
        lane = self.lanes.get(talk_id)
        if lane is None:
            lane = self.lanes[talk_id] = TalkLane(self._services, self._talks, self.loop, talk_id, user_id, self.home)
            lane.deliver(envelope)
            if not self._closing:
                self._start(lane)
        else:
            lane.deliver(envelope)

    def _stop(self, talk_id: str, why: StopReason, requested: float) -> None:
        lane = self.lanes.get(talk_id)
        if lane is not None:
            lane.stop(why, requested)

    def _start(self, lane: TalkLane) -> None:
        task = asyncio.get_running_loop().create_task(lane.work(), name=f"lane {lane.talk_id}")
        self._tasks.add(task)
        task.add_done_callback(partial(self._lane_done, lane))

    def _lane_done(self, lane: TalkLane, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if self._closing or self.retired:
            self._all_done()
            return
        # Nobody here cancels a lane: if one was, a brain has done it.
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            log.error("a lane has failed and is started again", exc_info=error, extra={"session": lane.talk_id})
            lane.claim = True
            asyncio.get_running_loop().call_later(RESTART, self._restart, lane)
            return
        if lane.idle and self._release(self, lane.talk_id):
            del self.lanes[lane.talk_id]
        elif not lane.idle:
            self._restart(lane)
        else:  # something is on its way to this lane: it starts when that arrives
            del self.lanes[lane.talk_id]
        self._all_done()

    def _end_parked(self) -> None:
        """Runs that wait for a person are not waited for: they go on when they are run again."""
        now = self._context.host.clock.now()
        for lane in list(self.lanes.values()):
            if lane.run is not None and lane.run.is_parked:
                lane.ending = True
                lane.stop(StopReason.WAIT if lane.run.may_suspend else StopReason.DRAIN, now)

    def _all_done(self) -> None:  # noqa: B027 — a worker has nothing to see to
        """A lane has ended; perhaps it was the last."""

    def _restart(self, lane: TalkLane) -> None:
        if not self._closing and not self.retired:
            self._start(lane)


class Worker(TalkLanes):
    """Has a thread of its own, and shares the talks with profiles with other workers."""

    def __init__(
        self,
        services: TurnServices,
        talks: LiveTalks,
        name: str,
        *,
        release: Callable[[TalkLanes, str], bool],
        ended: Callable[[Worker, BaseException | None], None],
    ) -> None:
        super().__init__(services, talks, name, release)
        self._inbound: deque[Callable[[], None]] = deque()
        self._rung = False
        self._close: asyncio.Event | None = None
        self.loop: Loop = services.context.host.start_loop(name, self._main, lambda _, error: ended(self, error))

    def close(self) -> None:
        """Drain: let what runs end, for a bounded time, and end."""
        self.post(self._begin_close)

    def post(self, act: Callable[[], None]) -> None:
        self._inbound.append(act)
        if not self._rung:
            self._rung = True
            self.loop.call(self._drain_inbound)

    @property
    def load(self) -> int:
        """Lanes here, and deliveries that have not been looked at."""
        return len(self.lanes) + len(self._inbound)

    async def _main(self, loop: Loop) -> None:
        self.loop = loop
        self._close = asyncio.Event()
        if self._closing:
            self._close.set()
        await self._close.wait()
        await self._drain()

    def _drain_inbound(self) -> None:
        self._rung = False
        inbound = self._inbound
        while inbound:
            act = inbound.popleft()
            try:
                act()
            except Exception:  # one that fails must not keep the others from being done
                log.exception("a delivery has failed", extra={"worker": self.name})

    def _begin_close(self) -> None:
        self._closing = True
        if self._close is not None:
            self._close.set()

    async def _drain(self) -> None:
        limits = self._context.limits
        self._end_parked()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limits.drain)
        now = self._context.host.clock.now()
        for lane in list(self.lanes.values()):
            lane.stop(StopReason.DRAIN, now)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limits.stop_patience + 0.3)
        for task in self._tasks:
            task.cancel()


class AgentTalks(TalkLanes):
    """The talks with one agent, on the loop it has while it is awake."""

    def __init__(
        self,
        services: TurnServices,
        talks: LiveTalks,
        home: TurnOwner,
        release: Callable[[TalkLanes, str], bool],
    ) -> None:
        super().__init__(services, talks, home.full_address, release)
        self.home = home

    def post(self, act: Callable[[], None]) -> None:
        assert self.home is not None
        self.home.call(act)

    @property
    def loop(self) -> Loop:  # type: ignore[override]
        assert self.home is not None
        return self.home.loop

    def finish(self) -> None:
        """Begin no more runs; those under way may end."""
        for lane in self.lanes.values():
            lane.ending = True
        self._end_parked()

    def end(self) -> None:
        now = self._context.host.clock.now()
        for lane in list(self.lanes.values()):
            lane.stop(StopReason.DRAIN, now)

    def _all_done(self) -> None:
        assert self.home is not None
        self.home.activity.talk_ended()
