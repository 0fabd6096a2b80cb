"""The course of an agent that is awake: its state, and the changes of it that are still to be recorded."""

from __future__ import annotations

from roost.core.agents import State
from roost.core.envelopes import Change
from roost.ports import Host

BRIEF = 0.1
"""Seconds without work after which it is recorded that an agent is idle, or waits for an answer."""


FOR_A_PERSON = "waits for a person"
RESTS = "rests until a person has decided"


class Course:
    """On the loop of its agent; `state` may be read anywhere."""

    def __init__(self, host: Host) -> None:
        self.state = State.IDLE
        self._host = host
        self._changes: list[Change] = []
        self._held: list[Change] | None = None
        """What comes after a turn has asked for sleep: it is recorded only if that is refused."""
        self._over = False

    def move(self, after: State, cause: str) -> None:
        """A pause that nobody could have noticed is not recorded."""
        before, self.state = self.state, after
        if self._over:
            return
        changes = self._changes if self._held is None else self._held
        last, now = changes[-1] if changes else None, self._host.clock.now()
        if after is State.ACTIVE and last is not None and _is_brief(last, now):
            changes.pop()
            return
        changes.append(Change(self._host.new_id("change"), now, before, after, cause, "roost"))

    def asleep(self, by: str) -> Change:
        """That it sleeps as soon as the turn that asked for it is settled; recorded with that."""
        self._held = self._held or []
        now = self._host.clock.now()
        return Change(self._host.new_id("change"), now, self.state, State.SLEEPING, "asked for by its turn", by)

    def stay(self) -> None:
        """That it sleeps was refused."""
        self._changes += self._held or ()
        self._held = None

    def end(self) -> None:
        """It is on record that it sleeps or is stopped: how it comes to that is no change any more."""
        self._over = True

    def take(self) -> list[Change]:
        """What is to be recorded; it is not kept here any longer."""
        changes, self._changes = self._changes, []
        return changes


def _is_brief(last: Change, now: float) -> bool:
    return last.after in (State.IDLE, State.WAITING) and now < last.at + BRIEF
