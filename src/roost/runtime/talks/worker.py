"""Worker: a thread with one event loop, on which the lanes of many talks run concurrently."""

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

WAKING = 0.001
"""Seconds in which a loop that was called is about to run; if it takes longer, it is busy or blocked."""
RESTART = 0.5
"""Seconds after which a lane is restarted that failed unexpectedly."""


class TalkLanes(ABC):
    """Lanes of talks on one loop: the loop of a worker, or that of an awake agent.

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
        self.agent: TurnOwner | None = None
        """Agent of these talks; None for talks with profiles."""
        self.retired = False
        """True if it was abandoned: its lanes run elsewhere, and its deliveries are dropped."""

    @property
    def running(self) -> int:
        """Return the number of runs."""
        return sum(lane.run is not None for lane in self.lanes.values())

    @abstractmethod
    def post(self, callback: Callable[[], None]) -> None:
        """Run the callback on the loop, in order; from any thread."""

    def deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, arrived: Callable[[], None]) -> None:
        self.post(partial(self._deliver, talk_id, user_id, envelope, arrived))

    def stop(self, talk_id: str, why: StopReason, requested: float) -> None:
        self.post(partial(self._stop, talk_id, why, requested))

    # --- on the loop -----------------------------------------------------------------------------

    def _deliver(self, talk_id: str, user_id: str, envelope: Envelope | None, arrived: Callable[[], None]) -> None:
        arrived()
        if self.retired:
            return  # another worker has the talk now and claims its envelopes
        lane = self.lanes.get(talk_id)
        if lane is None:
            lane = self.lanes[talk_id] = TalkLane(self._services, self._talks, self.loop, talk_id, user_id, self.agent)
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
            self._on_lane_end()
            return
        # Lanes are never cancelled here: a cancelled one was cancelled by a brain.
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if error is not None:
            log.error("lane of a talk failed; restarting it", exc_info=error, extra={"session": lane.talk_id})
            lane.claim = True
            asyncio.get_running_loop().call_later(RESTART, self._restart, lane)
            return
        if lane.idle and self._release(self, lane.talk_id):
            del self.lanes[lane.talk_id]
        elif not lane.idle:
            self._restart(lane)
        else:  # a delivery is on its way and will start the lane again
            del self.lanes[lane.talk_id]
        self._on_lane_end()

    def _end_parked(self) -> None:
        """Stop runs that wait for a person; they continue when they run again."""
        now = self._context.host.clock.now()
        for lane in list(self.lanes.values()):
            if lane.run is not None and lane.run.is_parked:
                lane.ending = True
                lane.stop(StopReason.WAIT if lane.run.may_suspend else StopReason.DRAIN, now)

    def _on_lane_end(self) -> None:  # noqa: B027 — a worker has nothing to do
        """Handle the end of a lane."""

    def _restart(self, lane: TalkLane) -> None:
        if not self._closing and not self.retired:
            self._start(lane)


class Worker(TalkLanes):
    """Lanes on a thread of their own. The talks with profiles are divided among the workers."""

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
        self._called_at: float | None = None
        """Time of the call that drains the inbound deliveries, until it runs."""
        self._close: asyncio.Event | None = None
        self.loop: Loop = services.context.host.start_loop(name, self._main, lambda _, error: ended(self, error))

    def close(self) -> None:
        """Drain: give running answers a limited time to finish, then end."""
        self.post(self._begin_close)

    def post(self, callback: Callable[[], None]) -> None:
        self._inbound.append(callback)
        if self._called_at is None:
            self._called_at = self._context.host.clock.monotonic()
            self.loop.call(self._drain_inbound)

    @property
    def load(self) -> int:
        """Return the number of lanes and of deliveries that are not processed yet."""
        return len(self.lanes) + len(self._inbound)

    def is_waking(self, now: float) -> bool:
        """Return True if its loop was called just now: one more delivery needs no wake-up."""
        called_at = self._called_at
        return called_at is not None and now - called_at < WAKING

    async def _main(self, loop: Loop) -> None:
        self.loop = loop
        self._close = asyncio.Event()
        if self._closing:
            self._close.set()
        await self._close.wait()
        await self._drain()

    def _drain_inbound(self) -> None:
        self._called_at = None
        inbound = self._inbound
        while inbound:
            callback = inbound.popleft()
            try:
                callback()
            except Exception:  # a failed delivery must not stop the others
                log.exception("delivery to a talk failed", extra={"worker": self.name})

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
    """Lanes of the talks with one agent, on its loop while it is awake."""

    def __init__(
        self,
        services: TurnServices,
        talks: LiveTalks,
        agent: TurnOwner,
        release: Callable[[TalkLanes, str], bool],
    ) -> None:
        super().__init__(services, talks, agent.full_address, release)
        self.agent = agent

    def post(self, callback: Callable[[], None]) -> None:
        assert self.agent is not None
        self.agent.call(callback)

    @property
    def loop(self) -> Loop:  # type: ignore[override]
        assert self.agent is not None
        return self.agent.loop

    def finish(self) -> None:
        """Start no more runs; running ones may end."""
        for lane in self.lanes.values():
            lane.ending = True
        self._end_parked()

    def end(self) -> None:
        now = self._context.host.clock.now()
        for lane in list(self.lanes.values()):
            lane.stop(StopReason.DRAIN, now)

    def _on_lane_end(self) -> None:
        assert self.agent is not None
        self.agent.activity.talk_ended()
