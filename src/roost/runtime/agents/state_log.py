"""State log of an awake agent: its lifecycle state, and the changes that are not recorded yet."""

from __future__ import annotations

import asyncio
from typing import Protocol

from roost.core.agents.agent import State, move
from roost.core.envelopes.outcomes import StateChange
from roost.ports import Host

BRIEF = 0.1
"""Seconds without work after which it is recorded that an agent is idle, or waits for an answer."""


class StateOwner(Protocol):
    """An activation, as its state log sees it."""

    address: str

    def record(self) -> None:
        """Write the changes that are not recorded yet."""


class StateLog:
    """Used on the loop of its agent; `state` may be read, and `pending` called, from any thread."""

    __slots__ = ("_changes", "_host", "_is_read", "_owner", "_timer", "state")

    def __init__(self, host: Host, owner: StateOwner) -> None:
        self.state = State.IDLE
        self._host = host
        self._owner = owner
        self._changes: list[StateChange] = []
        self._is_read = False
        """True if somebody has read the changes: then none of them is taken back."""
        self._timer: asyncio.TimerHandle | None = None

    def move(self, after: State, cause: str) -> None:
        """Move to a state, which is recorded later. A pause that nobody could have noticed is not recorded.

        Raises Conflict if the move is not allowed.
        """
        before, self.state = self.state, move(self.state, after, self._owner.address)
        changes, now = self._changes, self._host.clock.now()
        if after is State.ACTIVE and changes and _is_brief(changes[-1], now) and not self._is_read:
            changes.pop()
            if not self._is_read:  # nor has anybody meanwhile
                return
        self._announce(before, after, cause, now)

    def show(self, state: State, cause: str) -> None:
        """Move to a state, which is recorded with the closing of the turn, or soon if the turn takes longer."""
        self.move(state, cause)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(2 * BRIEF, self._due)

    def _due(self) -> None:
        self._timer = None
        self._owner.record()

    def cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def again(self) -> None:
        """Announce the state once more: the agent was woken while it still worked."""
        if self.state is not State.IDLE:
            self._announce(State.IDLE, self.state, "continues", self._host.clock.now())

    def _announce(self, before: State, after: State, cause: str, now: float) -> None:
        change_id = self._host.new_id("change")
        self._changes.append(StateChange(change_id, now, before, after, cause, "roost", announced=True))

    def asleep(self, by: str) -> StateChange:
        """Return the change to sleeping, which is recorded with the closing of the turn that asked for it."""
        now, change_id = self._host.clock.now(), self._host.new_id("change")
        after = move(self.state, State.SLEEPING, self._owner.address)
        return StateChange(
            change_id, now, self.state, after, "asked for by its turn", by, announced=True, earlier=self.pending()
        )

    def pending(self) -> tuple[StateChange, ...]:
        """Return the changes that are not recorded yet, and keep them."""
        self._is_read = True
        return tuple(self._changes)

    def take(self) -> list[StateChange]:
        """Return the changes that are not recorded yet, and drop them."""
        changes, self._changes, self._is_read = self._changes, [], False
        return changes


def _is_brief(last: StateChange, now: float) -> bool:
    """Return True if the last change was to a pause, a moment ago."""
    paused = last.before == State.ACTIVE and last.after in (State.IDLE, State.WAITING)
    return paused and now < last.at + BRIEF
