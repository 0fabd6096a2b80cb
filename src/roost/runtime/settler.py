"""The settler: writes what tries leave behind, of all agents together. One write is under way, the others gather."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roost.core.envelopes import Change, WorkClosing, WorkSettled, messages
from roost.ports import Loop
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.activation import Activation
    from roost.runtime.hall import Hall

MOST = 2_000
"""Closings in one write."""
Try = tuple["Activation", WorkClosing, int]
"""Whose it was, what it leaves behind, and how often the agent's memory had been edited by then."""


class Settler:
    """Any thread may call `put`; whoever put it is told on its own loop."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._lock = shop.host.lock()
        self._waiting: deque[Try] = deque()
        self._notes: deque[tuple[str, Change]] = deque()
        self._writing = False
        self._called: Loop | None = None
        """Which loop was last asked to begin, and has not yet."""
        self._held: dict[Activation, list[Try]] = {}
        """What could not be written, with all of the same agent's since: it is written in order, after a pause."""
        self._resumed: deque[Activation] = deque()

    def put(self, activation: Activation, closing: WorkClosing, edits: int) -> None:
        self._waiting.append((activation, closing, edits))
        self._begin_soon(activation)

    def note(self, activation: Activation, changes: list[Change]) -> None:
        """Record changes of its state; they are told of, and no more, so that a failure is not made up for."""
        self._notes.extend((activation.address, change) for change in changes)
        self._begin_soon(activation)

    def resume(self, activation: Activation) -> None:
        """Try again to write what could not be written; on its loop."""
        self._resumed.append(activation)
        if self._begins():
            self._write()

    def _begin_soon(self, activation: Activation) -> None:
        """Not at once: what else ends in this turn of the loop shall go with it.

        A loop that is blocked by its agent holds up nobody else: whoever comes next begins on a loop of its own.
        """
        if not self._writing and self._called is not activation.loop:
            self._called = activation.loop
            activation.loop.call(self._begin)

    def _begin(self) -> None:
        self._called = None
        if self._begins():
            self._write()

    def _begins(self) -> bool:
        """Whether nobody writes, and so the caller shall. No lock is taken while someone does."""
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
        closings = tuple(_remembered(*one) for one in group)
        noted = tuple(notes.popleft() for _ in range(min(len(notes), MOST)))
        try:
            self._shop.store.write(
                self._shop.statements.inbox.settle, closings, self._full(closings), noted,
                then=partial(self._written, group), failed=partial(self._failed, group),
            )  # fmt: skip
        except Exception as error:  # whoever waits must hear of it
            self._failed(group, error)

    def _group(self) -> list[Try]:
        """What is written next: nothing of an agent of whom something older waits for its next try."""
        waiting, held = self._waiting, self._held
        while self._resumed:
            waiting.extendleft(reversed(held.pop(self._resumed.popleft(), [])))
        group: list[Try] = []
        for _ in range(min(len(waiting), MOST)):
            one = waiting.popleft()
            if held and one[0] in held:
                held[one[0]].append(one)
            else:
                group.append(one)
        return group

    def _full(self, closings: tuple[WorkClosing, ...]) -> frozenset[str]:
        """Those who are sent more than they have room for in memory."""
        sent: dict[str, int] = {}
        for closing in closings:
            for effect in closing.sent:
                for envelope in messages(effect):
                    sent[envelope.address] = sent.get(envelope.address, 0) + 1
        return frozenset(address for address, count in sent.items() if not self._hall.has_room(address, count))

    def _written(self, group: list[Try], settled: tuple[WorkSettled, ...]) -> None:
        """On the writer's thread, after the commit."""
        self._hall.settled(tuple(closing for _, closing, _ in group), settled)
        told: dict[Activation, list[tuple[WorkClosing, WorkSettled]]] = {}
        for (activation, closing, _), one in zip(group, settled, strict=True):
            told.setdefault(activation, []).append((closing, one))
        for activation, results in told.items():
            if not (activation.parked and self._hall.leave(activation, results)):
                activation.call(partial(activation.settled, results))
        self._write()

    def _failed(self, group: list[Try], error: Exception) -> None:
        told = dict.fromkeys(activation for activation, _, _ in group)
        self._hall.missed(effect for _, closing, _ in group for effect in closing.sent)
        for one in group:
            self._held.setdefault(one[0], []).append(one)
        for activation in told:
            activation.call(partial(activation.unsettled, error))
        self._write()


def _remembered(activation: Activation, closing: WorkClosing, edits: int) -> WorkClosing:
    """What was remembered before the memory was edited is not written any more."""
    return closing if closing.memory is None or edits == activation.memory.edits else replace(closing, memory=None)
