"""The course of an agent that is awake: its state, and the changes of it that are still to be recorded."""

from __future__ import annotations

from roost.core.agents.agent import State
from roost.core.envelopes.outcomes import StateChange
from roost.ports import Host

BRIEF = 0.1
"""Seconds without work after which it is recorded that an agent is idle, or waits for an answer."""


class StateLog:
    """On the loop of its agent; `state` may be read, and `pending` called, anywhere."""

    def __init__(self, host: Host) -> None:
        self.state = State.IDLE
        self._host = host
        self._changes: list[StateChange] = []
        self._read = False
        """True if somebody has read the changes: then none of them is taken back."""

    def move(self, after: State, cause: str) -> None:
        """A pause that nobody could have noticed is not recorded."""
        before, self.state = self.state, after
        changes, now = self._changes, self._host.clock.now()
        if after is State.ACTIVE and changes and _is_brief(changes[-1], now) and not self._read:
            changes.pop()
            if not self._read:  # nor has anybody meanwhile
                return
        self._announce(before, after, cause, now)

    def again(self) -> None:
        """Announce the state once more: the agent was woken while it still worked."""
        if self.state is not State.IDLE:
            self._announce(State.IDLE, self.state, "continues", self._host.clock.now())

    def _announce(self, before: State, after: State, cause: str, now: float) -> None:
        change_id = self._host.new_id("change")
        self._changes.append(StateChange(change_id, now, before, after, cause, "roost", announced=True))

    def asleep(self, by: str) -> StateChange:
        """Return that it sleeps as soon as the turn that asked for it is settled, to be recorded with that."""
        now, change_id = self._host.clock.now(), self._host.new_id("change")
        return StateChange(
            change_id, now, self.state, State.SLEEPING, "asked for by its turn", by, earlier=self.pending()
        )

    def pending(self) -> tuple[StateChange, ...]:
        """Return what is to be recorded, which is kept here all the same."""
        self._read = True
        return tuple(self._changes)

    def take(self) -> list[StateChange]:
        """Return what is to be recorded; it is not kept here any longer."""
        changes, self._changes, self._read = self._changes, [], False
        return changes


def _is_brief(last: StateChange, now: float) -> bool:
    """Return True if it has paused since then, and worked before."""
    paused = last.before == State.ACTIVE and last.after in (State.IDLE, State.WAITING)
    return paused and now < last.at + BRIEF
