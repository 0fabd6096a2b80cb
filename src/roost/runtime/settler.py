"""The settler: writes what tries leave behind, of all agents together. One write is under way, the others gather."""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roost.core.envelopes import Change, SendTask, WorkClosing, WorkSettled
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

    def put(self, activation: Activation, closing: WorkClosing, edits: int) -> None:
        self._waiting.append((activation, closing, edits))
        if self._begins():
            # Not at once: what else ends in this turn of the loop shall go with it.
            activation.loop.call(self._write)

    def note(self, activation: Activation, changes: list[Change]) -> None:
        """Record changes of its state; they are told of, and no more, so that a failure is not made up for."""
        self._notes.extend((activation.address, change) for change in changes)
        if self._begins():
            activation.loop.call(self._write)

    def _begins(self) -> bool:
        """Whether nobody writes, and so the caller shall. No lock is taken while someone does."""
        if self._writing:
            return False
        with self._lock:
            begins, self._writing = not self._writing, True
        return begins

    def _write(self) -> None:
        waiting, notes = self._waiting, self._notes
        while not waiting and not notes:
            self._writing = False
            if not (waiting or notes) or not self._begins():  # looked at again: something may have come in between
                return
        group = [waiting.popleft() for _ in range(min(len(waiting), MOST))]
        closings = tuple(_remembered(*one) for one in group)
        noted = tuple(notes.popleft() for _ in range(min(len(notes), MOST)))
        try:
            self._shop.store.write(
                self._shop.statements.inbox.settle, closings, self._full(closings), noted,
                then=partial(self._written, group), failed=partial(self._failed, group),
            )  # fmt: skip
        except Exception as error:  # whoever waits must hear of it
            self._failed(group, error)

    def _full(self, closings: tuple[WorkClosing, ...]) -> frozenset[str]:
        """Those who are sent more than they have room for in memory."""
        sent: dict[str, int] = {}
        for closing in closings:
            for effect in closing.sent:
                if type(effect) is SendTask:
                    address = effect.envelope.address
                    sent[address] = sent.get(address, 0) + 1
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
        told: dict[Activation, list[Try]] = {}
        for one in group:
            told.setdefault(one[0], []).append(one)
        for activation, tries in told.items():
            activation.call(partial(activation.unsettled, tries, error))
        self._write()


def _remembered(activation: Activation, closing: WorkClosing, edits: int) -> WorkClosing:
    """What was remembered before the memory was edited is not written any more."""
    return closing if closing.memory is None or edits == activation.edits else replace(closing, memory=None)
