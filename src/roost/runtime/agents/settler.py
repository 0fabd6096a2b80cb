"""Settler: writes closings of all agents in groups, one write at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from roost.core.envelopes.outcomes import StateChange, StateWrite
from roost.core.runs import Closing, Settled
from roost.ports import Loop
from roost.runtime.agents.phase import PhaseMachine
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.notifier import Notifier
from roost.runtime.turns.agent_state import AgentState
from roost.stores.sql import settlement

MOST = 2_000
"""Closings in one write."""
OVERDUE = 2.0
"""Seconds after which held closings are written again without the timer of their agent."""
Results = list[tuple[Closing, Settled]]


class SettlingClosings(Protocol):
    """Closings of one agent, on its loop."""

    def settled(self, results: Results) -> None:
        """Handle closings that are written or were refused."""

    def unsettled(self, error: Exception) -> None:
        """Retry to write them after a pause."""


class Settling(Protocol):
    """An agent whose closings are written."""

    address: str
    epoch: int
    loop: Loop
    turn_state: AgentState
    phases: PhaseMachine

    @property
    def closings(self) -> SettlingClosings: ...

    def call(self, act: Callable[[], None]) -> None:
        """Run the callback on the agent's loop, in order."""

    def leave(self, results: Results) -> bool:
        """Retire if it is detached and these were its last closings; return False if it needs a loop."""


QueuedClosing = tuple[Settling, Closing | StateWrite, int]
"""The agent, its closing, and the number of edits of its state by then.

A turn of a talk that has not ended adds a change of the state, in order with the closings of other turns.
"""


class Settler:
    """Queue of closings. Any thread may call `put`; agents are notified on their own loops."""

    def __init__(
        self,
        context: RuntimeContext,
        settled: Callable[[tuple[Closing, ...], tuple[Settled, ...]], None],
        notifier: Notifier,
    ) -> None:
        self._context = context
        self._settled = settled
        """Called after each commit, before the agents are notified."""
        self._notifier = notifier
        self._lock = context.host.lock()
        self._waiting: deque[QueuedClosing] = deque()
        self._notes: deque[tuple[str, int, StateChange]] = deque()
        self._writing = False
        self._called: Loop | None = None
        """Loop that was asked to start a write and has not yet."""
        self._held: dict[Settling, list[QueuedClosing]] = {}
        """Closings that could not be written, and all later ones of the same agents; written in order after a pause."""
        self._held_since: dict[Settling, float] = {}
        self._resumed: deque[Settling] = deque()

    def put(self, activation: Settling, closing: Closing | StateWrite, edits: int) -> None:
        self._waiting.append((activation, closing, edits))
        self._begin_soon(activation)

    def note(self, activation: Settling, changes: list[StateChange]) -> None:
        """Record changes of its state; a failed write of them is not retried."""
        self._notes.extend((activation.address, activation.epoch, change) for change in changes)
        self._begin_soon(activation)

    def resume(self, activation: Settling) -> None:
        """Retry to write held closings; on the agent's loop."""
        self._resumed.append(activation)
        if self._begins():
            self._write()

    def resume_overdue(self) -> None:
        """Retry for agents whose own retry is overdue: the loop with its timer may have ended. From any thread."""
        latest = self._context.host.clock.monotonic() - OVERDUE
        overdue = [activation for activation, since in list(self._held_since.items()) if since < latest]
        for activation in overdue:
            self.resume(activation)

    def _begin_soon(self, activation: Settling) -> None:
        """Begin a write in the next iteration of the loop, with all closings until then.

        A blocked loop delays no other agent: the next one begins the write on its own loop.
        """
        if not self._writing and self._called is not activation.loop:
            self._called = activation.loop
            activation.loop.call(self._begin)

    def _begin(self) -> None:
        self._called = None
        if self._begins():
            self._write()

    def _begins(self) -> bool:
        """Return True to the one caller that must write. Takes no lock during a write."""
        if self._writing:
            return False
        with self._lock:
            begins, self._writing = not self._writing, True
        return begins

    def _write(self) -> None:
        waiting, notes = self._waiting, self._notes
        group = self._group()
        while not group and not notes:
            self._writing = False
            if not (waiting or notes or self._resumed) or not self._begins():  # something may have arrived in between
                return
            group = self._group()
        closings = tuple(
            _without_stale_state(activation, closing, edits)
            for activation, closing, edits in group
            if isinstance(closing, Closing)
        )
        announced = tuple(notes.popleft() for _ in range(min(len(notes), MOST)))
        try:
            self._context.store.write(
                settlement.settle,
                closings,
                announced,
                _writes(group),
                facts=partial(self._context.facts.settled, closings),
                then=partial(self._written, group),
                failed=partial(self._failed, group),
            )
        except Exception as error:  # the agents that wait must be notified
            self._failed(group, error)

    def _group(self) -> list[QueuedClosing]:
        """Return the next group; skip agents with older closings that wait for a retry."""
        waiting, held = self._waiting, self._held
        while self._resumed:
            activation = self._resumed.popleft()
            self._held_since.pop(activation, None)
            waiting.extendleft(reversed(held.pop(activation, [])))
        group: list[QueuedClosing] = []
        for _ in range(min(len(waiting), MOST)):
            one = waiting.popleft()
            if held and one[0] in held:
                held[one[0]].append(one)
            else:
                group.append(one)
        return group

    def _written(self, group: list[QueuedClosing], settled: tuple[Settled, ...]) -> None:
        """Notify the agents; on the writer's thread, after the commit."""
        closings = tuple(one for _, one, _ in group if isinstance(one, Closing))
        self._settled(closings, settled)
        all_results: dict[Settling, Results] = {}
        left = iter(settled)
        for activation, one, _ in group:
            if isinstance(one, Closing):
                all_results.setdefault(activation, []).append((one, next(left)))
            else:
                activation.turn_state.write_finished()
        for activation, results in all_results.items():
            if not (activation.phases.is_detached and activation.leave(results)):
                activation.call(partial(activation.closings.settled, results))
        self._write()

    def _failed(self, group: list[QueuedClosing], error: Exception) -> None:
        activations = dict.fromkeys(activation for activation, _, _ in group)
        self._notifier.missed(effect for _, one, _ in group if isinstance(one, Closing) for effect in one.sent)
        for one in group:
            self._held.setdefault(one[0], []).append(one)
        for activation in activations:
            self._held_since[activation] = self._context.host.clock.monotonic()
            activation.call(partial(activation.closings.unsettled, error))
        self._write()


def _without_stale_state(activation: Settling, closing: Closing, edits: int) -> Closing:
    """Drop a state that is older than the last edit by a person."""
    return closing if closing.state is None or edits == activation.turn_state.edits else replace(closing, state=None)


def _writes(group: list[QueuedClosing]) -> tuple[StateWrite, ...]:
    """Return the state changes, each with its position among the closings, without those before a person's edit."""
    writes: list[StateWrite] = []
    closings = 0
    for activation, one, edits in group:
        if isinstance(one, Closing):
            closings += 1
        elif edits == activation.turn_state.edits:
            owned = replace(one, address=activation.address, epoch=activation.epoch)
            writes.append(replace(owned, position=closings))
    return tuple(writes)
