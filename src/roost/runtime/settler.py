"""The settler: writes what tries leave behind, of all agents together. One write is under way, the others gather."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from roost.core.envelopes import SendTask, WorkClosing, WorkSettled
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.activation import Activation
    from roost.runtime.hall import Hall

MOST = 2_000
"""Closings in one write."""
Group = list[tuple["Activation", WorkClosing]]


class Settler:
    """Any thread may call `put`; whoever put it is told on its own loop."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._lock = shop.host.lock()
        self._waiting: Group = []
        self._writing = False

    def put(self, activation: Activation, closing: WorkClosing) -> None:
        with self._lock:
            self._waiting.append((activation, closing))
            if self._writing:
                return
            self._writing = True
        # Not at once: what else ends in this turn of the loop shall go with it.
        activation.loop.call(self._write)

    def drop_memory(self, activation: Activation) -> None:
        """What waits here was remembered before the memory was edited."""
        with self._lock:
            self._waiting = [
                (one, replace(closing, memory=None) if one is activation else closing) for one, closing in self._waiting
            ]

    def _write(self) -> None:
        with self._lock:
            group, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            if not group:
                self._writing = False
                return
        closings = tuple(closing for _, closing in group)
        try:
            self._shop.store.write(
                self._shop.statements.inbox.settle, closings, self._full(closings),
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

    def _written(self, group: Group, settled: tuple[WorkSettled, ...]) -> None:
        """On the writer's thread, after the commit."""
        self._hall.settled(tuple(closing for _, closing in group), settled)
        told: dict[Activation, list[tuple[WorkClosing, WorkSettled]]] = {}
        for (activation, closing), one in zip(group, settled, strict=True):
            told.setdefault(activation, []).append((closing, one))
        for activation, results in told.items():
            activation.call(partial(activation.settled, results))
        self._write()

    def _failed(self, group: Group, error: Exception) -> None:
        told: dict[Activation, list[WorkClosing]] = {}
        for activation, closing in group:
            told.setdefault(activation, []).append(closing)
        for activation, closings in told.items():
            activation.call(partial(activation.unsettled, closings, error))
        self._write()
