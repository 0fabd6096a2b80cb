"""Loss of an agent's loop: the run that blocked or ended it fails, and all other runs are repeated on another loop."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roost.core.agents.agent import State
from roost.core.failures.faults import Fault
from roost.core.runs import Closing, RunOutcome, Settled, Verdict
from roost.core.talks.runs import StopReason
from roost.errors import Unavailable
from roost.runtime.agents.failures import failure_notices
from roost.stores.sql import settlement

if TYPE_CHECKING:
    from roost.runtime.agents.activation import Activation
    from roost.runtime.agents.work import Work
    from roost.runtime.dispatch.dispatcher import Dispatcher

log = logging.getLogger("roost.dispatcher")


def lose(dispatcher: Dispatcher, activation: Activation, fault: Fault, culprit: str | None) -> None:
    """Take all work from an agent that is already retired; from any thread.

    Only the run named by `culprit` counts as a failed attempt. If it is unknown, each running one counts: otherwise a
    turn that always ends its loop would be tried without end.
    """
    now, works = dispatcher.context.host.clock.now(), activation.works
    for work in works:
        work.fence(StopReason.LOST, now)
    lost = dispatcher.placement.lose(activation.talks)
    runs = {run.run_id for run in (*works, *(lane.run for lane in lost if lane.run is not None))}
    blamed = [work for work in works if culprit not in runs or work.run_id == culprit]
    spared = [work for work in works if work not in blamed]
    for work in spared:
        dispatcher.context.breakers.release(work.turn.profile)
        dispatcher.context.facts.cut_off(work.envelope, work.run_id, RunOutcome.LOST, work.started)
    for envelope_id in activation.lane_queue.suspects:
        dispatcher.context.quarantine.leave(envelope_id)
    _settle(dispatcher, activation, tuple(_closing(activation, work, fault) for work in blamed))
    dispatcher.placement.move_all(lost, culprit, fault, is_known=culprit in runs)


def _closing(activation: Activation, work: Work, fault: Fault) -> Closing:
    closing = work.lost(fault)
    activation.dispatcher.forget_task(closing.envelope.envelope_id)
    if activation.state_log.state is not State.IDLE:
        activation.state_log.move(State.IDLE, "its thread was given up")
    closing.changes.extend(activation.state_log.take())
    if closing.verdict is not Verdict.DEAD:
        return closing
    return replace(closing, sent=closing.sent + failure_notices(activation, closing))


def _settle(dispatcher: Dispatcher, activation: Activation, closings: tuple[Closing, ...]) -> None:
    """Write the failures before the agent is claimed again, because the claim starts a new epoch."""
    look = partial(dispatcher.notifier.look, activation.address)

    def written(settled: tuple[Settled, ...]) -> None:
        dispatcher.settled(closings, settled)
        for closing in closings:
            dispatcher.notifier.wake_at(closing.due)
        look()

    def failed(error: Exception) -> None:
        log.warning("store unavailable, a lost attempt is not counted: %s", error, extra={"agent": activation.address})
        look()

    if closings:
        try:
            settle = settlement.settle
            facts = partial(dispatcher.context.facts.settled, closings)
            dispatcher.context.store.write(settle, closings, (), facts=facts, then=written, failed=failed)
        except Unavailable as error:
            failed(error)
    dispatcher.forget(activation)
    look()  # also for what was delivered to it meanwhile, and what nobody else looks for: `written` may be over
