"""Slot of an awake agent: one of `awake_agents`, released to others while all turns of the agent wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class SlotOwner(Protocol):
    """An activation."""

    def call(self, act: Callable[[], None]) -> None:
        """Run it on the loop, in order; from any thread."""

    def request_slot(self) -> None:
        """Ask the pool of loops for a slot, which calls `granted`."""


class Slot:
    """The pool of loops calls `granted` and sets `is_released`; turns call `regain` on the agent's loop."""

    __slots__ = ("_granted", "_owner", "is_released")

    def __init__(self, owner: SlotOwner) -> None:
        self._owner = owner
        self.is_released = False
        self._granted: asyncio.Event | None = None

    async def regain(self) -> None:
        """Wait for a slot again; the first of several turns that wait requests it."""
        if (granted := self._granted) is None:
            self._granted = granted = asyncio.Event()
            self._owner.request_slot()
        await granted.wait()

    def granted(self) -> None:
        """Resume the turns that wait for the slot; from any thread."""
        self._owner.call(self._resume)

    def _resume(self) -> None:
        if self._granted is not None:
            self._granted.set()
            self._granted = None
