"""Settler: writes closings of all agents in groups, one write at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from roost.core.envelopes.outcomes import MemoryWrite, StateChange, WorkClosing, WorkSettled
from roost.ports import Loop
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.notifier import Notifier
from roost.runtime.turns.agent_state import AgentState
from roost.stores.sql.inbox import settlement

MOST = 2_000
"""Closings in one write."""
Results = list[tuple[WorkClosing, WorkSettled]]


class Settling(Protocol):
    """An agent whose closings are written."""

    address: str
    epoch: int
    loop: Loop
    turn_state: AgentState

    @property
    def parked(self) -> bool: ...

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the agent's loop, in order."""

    def settled(self, results: Results) -> None:
        """Take note that these are written, or were refused; on the loop."""

    def unsettled(self, error: Exception) -> None:
        """Have the write tried again after a pause; on the loop."""

    def leave(self, results: Results) -> bool:
        """Retire if it is parked and these were its last closings; False: it needs a loop."""


Attempt = tuple[Settling, WorkClosing | MemoryWrite, int]
"""The agent, its closing, and how often its memory had been edited by then.

A turn of a talk that is not over leaves a change of the memory, in order with the ends of other turns.
"""


class Settler:
    """Any thread may call `put`; agents are notified on their own loops."""

    def __init__(
        self,
        context: RuntimeContext,
        settled: Callable[[tuple[WorkClosing, ...], tuple[WorkSettled, ...]], None],
        notifier: Notifier,
    ) -> None:
        self._context = context
        self._settled = settled
        """Called after each commit, before the agents are notified."""
        self._notifier = notifier
        self._lock = context.host.lock()
        self._waiting: deque[Attempt] = deque()
        self._notes: deque[tuple[str, int, StateChange]] = deque()
        self._writing = False
        self._called: Loop | None = None
        """Which loop was last asked to begin, and has not yet."""
        self._held: dict[Settling, list[Attempt]] = {}
        """What could not be written, with all of the same agent's since: it is written in order, after a pause."""
        self._resumed: deque[Settling] = deque()

    def put(self, activation: Settling, closing: WorkClosing | MemoryWrite, edits: int) -> None:
        self._waiting.append((activation, closing, edits))
        self._begin_soon(activation)

    def note(self, activation: Settling, changes: list[StateChange]) -> None:
        """Record changes of its state; a failed write of them is not retried."""
        self._notes.extend((activation.address, activation.epoch, change) for change in changes)
        self._begin_soon(activation)

    def resume(self, activation: Settling) -> None:
        """Try again to write what could not be written; on its loop."""
        self._resumed.append(activation)
        if self._begins():
            self._write()

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
        """Return True to the caller that must write: nobody else does. Takes no lock during a write."""
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
            if not (waiting or notes or self._resumed) or not self._begins():  # something may have come in between
                return
            group = self._group()
        closings = tuple(_remembered(one, of, edits) for one, of, edits in group if isinstance(of, WorkClosing))
        noted = tuple(notes.popleft() for _ in range(min(len(notes), MOST)))
        try:
            self._context.store.write(
                settlement.settle,
                closings,
                noted,
                _writes(group),
                then=partial(self._written, group),
                failed=partial(self._failed, group),
            )
        except Exception as error:  # the agents that wait must be notified
            self._failed(group, error)

    def _group(self) -> list[Attempt]:
        """Return the next group; skip agents with older closings that wait for a retry."""
        waiting, held = self._waiting, self._held
        while self._resumed:
            waiting.extendleft(reversed(held.pop(self._resumed.popleft(), [])))
        group: list[Attempt] = []
        for _ in range(min(len(waiting), MOST)):
            one = waiting.popleft()
            if held and one[0] in held:
                held[one[0]].append(one)
            else:
                group.append(one)
        return group

    def _written(self, group: list[Attempt], settled: tuple[WorkSettled, ...]) -> None:
        """On the writer's thread, after the commit."""
        closings = tuple(one for _, one, _ in group if isinstance(one, WorkClosing))
        self._settled(closings, settled)
        told: dict[Settling, Results] = {}
        left = iter(settled)
        for activation, one, _ in group:
            if isinstance(one, WorkClosing):
                told.setdefault(activation, []).append((one, next(left)))
            else:
                activation.turn_state.write_finished()
        for activation, results in told.items():
            if not (activation.parked and activation.leave(results)):
                activation.call(partial(activation.settled, results))
        self._write()

    def _failed(self, group: list[Attempt], error: Exception) -> None:
        told = dict.fromkeys(activation for activation, _, _ in group)
        self._notifier.missed(effect for _, one, _ in group if isinstance(one, WorkClosing) for effect in one.sent)
        for one in group:
            self._held.setdefault(one[0], []).append(one)
        for activation in told:
            activation.call(partial(activation.unsettled, error))
        self._write()


def _remembered(activation: Settling, closing: WorkClosing, edits: int) -> WorkClosing:
    """Drop memory that is older than the last edit by a person."""
    return closing if closing.memory is None or edits == activation.turn_state.edits else replace(closing, memory=None)


def _writes(group: list[Attempt]) -> tuple[MemoryWrite, ...]:
    """Each with its place among the closings. What was changed before a person edited the memory is not written."""
    writes: list[MemoryWrite] = []
    closings = 0
    for activation, one, edits in group:
        if isinstance(one, WorkClosing):
            closings += 1
        elif edits == activation.turn_state.edits:
            whose = replace(one, address=activation.address, epoch=activation.epoch)
            writes.append(replace(whose, position=closings))
    return tuple(writes)
