"""Closings of an awake agent: how the attempts on its envelopes ended, until that is written."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Protocol

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.outcomes import NEVER, StateWrite
from roost.core.runs import KEPT, Closing, RunOutcome, Settled, Verdict
from roost.runtime.agents.failures import expired, failure_notices, withdrawn
from roost.runtime.agents.host import AgentHost
from roost.runtime.agents.lanes.intake import Intake
from roost.runtime.agents.lanes.lane_queue import Lane, LaneQueue
from roost.runtime.agents.settler import Settling
from roost.runtime.agents.state_log import StateLog
from roost.runtime.agents.work import WorkOwner

log = logging.getLogger("roost.agent")


class ClosingOwner(WorkOwner, Settling, Protocol):
    """An activation, as its closings see it; on its loop."""

    intake: Intake
    lane_queue: LaneQueue
    state_log: StateLog

    @property
    def dispatcher(self) -> AgentHost: ...

    def run_ready(self) -> None:
        """Start tasks for ready lanes; become idle if there is nothing to do."""

    def begin_draining(self) -> None:
        """Start no more turns."""


class Closings:
    """Used on the agent's loop."""

    __slots__ = ("_agent", "unwritten")

    def __init__(self, agent: ClosingOwner) -> None:
        self._agent = agent
        self.unwritten = 0
        """Number of closings that are being written."""

    def close(self, closing: Closing, lane: Lane) -> None:
        """Settle the first envelope of a lane.

        The next one may start before this is written: if the write is refused, all of it is discarded.
        """
        agent = self._agent
        lane.work, lane.busy = None, False
        if closing.envelope.suspect:
            agent.context.quarantine.leave(closing.envelope.envelope_id)
        if closing.verdict is not Verdict.DONE:
            closing = self._not_done(closing, lane)
        if closing.verdict not in KEPT:
            lane.popleft()
            agent.lane_queue.offer(lane)
        if closing.verdict is Verdict.CANCELLED:  # the cancel is written already: this is only for the record
            agent.activity.settle()
            agent.context.facts.cut_off(
                closing.envelope, closing.run_id, RunOutcome.STOPPED, closing.started, closing.profile, closing.usage
            )
            self.settle(closing)
            return
        if closing.verdict is not Verdict.RELEASED:  # with which nothing is written of it
            closing.changes.extend(agent.state_log.take())
        if closing.sleep is not None:
            closing.changes.append(agent.asleep())
        else:
            agent.activity.settle()
        self.settle(closing)

    def _not_done(self, closing: Closing, lane: Lane) -> Closing:
        """Add the notifications of a failure; delay the lane if there is a retry."""
        agent = self._agent
        agent.dispatcher.forget_task(closing.envelope.envelope_id)
        if closing.verdict is Verdict.WAITING:
            lane.due = NEVER
        elif closing.verdict is Verdict.RETRY:
            lane.due = closing.due
            pause = max(0.0, closing.due - agent.context.host.clock.now())
            asyncio.get_running_loop().call_later(pause, self._retry, lane, closing)
        elif closing.verdict is Verdict.REPEATED:
            lane.repeats += 1
            if closing.envelope.suspect and lane.waiting:
                lane.waiting[0] = replace(lane.waiting[0], suspect=0)
            agent.lane_queue.offer(lane)
        elif closing.verdict is Verdict.DEAD:
            return replace(closing, sent=closing.sent + failure_notices(agent, closing))
        return closing

    def _retry(self, lane: Lane, closing: Closing) -> None:
        lane.due = 0.0
        if lane.waiting and lane.waiting[0].envelope_id == closing.envelope.envelope_id:
            e = closing.envelope
            lane.waiting[0] = replace(e, attempts=e.attempts + 1, journaled=True, suspect=0)
        self._agent.lane_queue.offer(lane)
        self._agent.run_ready()

    def forget(self, lane: Lane, envelope: Envelope) -> None:
        """Drop the first envelope of a lane without a closing: it is gone from the store."""
        lane.busy = False
        if lane.waiting and lane.waiting[0] is envelope:
            lane.popleft()
        self._agent.intake.known.discard(envelope.envelope_id)
        self._agent.lane_queue.offer(lane)

    def close_expired(self) -> None:
        """Close the envelopes that have expired before they were started."""
        agent, now = self._agent, self._agent.context.host.clock.now()
        for lane in agent.lane_queue.unstarted():
            while lane.waiting and (lane.waiting[0].expires or NEVER) <= now:
                self.close(expired(lane.waiting[0], agent.epoch, now), lane)

    def withdraw(self, envelope_id: str) -> None:
        """Drop a request for whose answer nobody waits any more, unless it has started."""
        agent = self._agent
        if (envelope := agent.lane_queue.drop(envelope_id, started=False)) is not None:
            self.settle(withdrawn(envelope, agent.epoch, agent.context.host.clock.now()))
            agent.activity.settle()

    def settle(self, closing: Closing) -> None:
        agent = self._agent
        self.unwritten += 1
        if closing.state is not None:
            agent.turn_state.write_queued()
        agent.dispatcher.settler.put(agent, closing, agent.turn_state.edits)

    def remember(self, write: StateWrite) -> None:
        """Write a change of `turn.state` by a talk's turn, in order with the closings of other turns."""
        self._agent.dispatcher.settler.put(self._agent, write, self._agent.turn_state.edits)

    def settled(self, results: list[tuple[Closing, Settled]]) -> None:
        """Take note that these are written, or were refused."""
        agent = self._agent
        self.unwritten -= len(results)
        for closing, one in results:
            if closing.state is not None:
                agent.turn_state.write_finished()
            if closing.verdict not in KEPT:
                agent.intake.known.discard(closing.envelope.envelope_id)
            elif closing.verdict is Verdict.WAITING:
                agent.dispatcher.notifier.look(agent.address)  # they may have decided meanwhile
            elif one.taken and closing.verdict is Verdict.RETRY:
                agent.dispatcher.notifier.wake_at(closing.due)
            if not one.taken and closing.verdict not in (Verdict.RELEASED, Verdict.CANCELLED):
                agent.begin_draining()  # it was stopped or taken over
            elif closing.sleep is not None:
                agent.fell_asleep(closing.sleep)

    def unsettled(self, error: Exception) -> None:
        """Try again after a pause to write what could not be written; until then it is kept in RAM, in order."""
        agent = self._agent
        log.warning("store unavailable, closings are written later: %s", error, extra={"agent": agent.address})
        pause = 0.2 + 0.8 * agent.context.host.jitter()
        asyncio.get_running_loop().call_later(pause, agent.dispatcher.settler.resume, agent)

    def are_last(self, results: list[tuple[Closing, Settled]]) -> bool:
        """Return True if nothing is left to settle or to try again after these."""
        return len(results) == self.unwritten and all(
            one.taken and closing.sleep is None and closing.verdict is not Verdict.RETRY for closing, one in results
        )
