"""The operations of the store on meetings, and what they give back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from roost.core.envelopes import Envelope
from roost.core.meetings.bodies import Body
from roost.core.meetings.effects import MeetingChange, WriteEntry
from roost.core.meetings.entries import Vector
from roost.core.meetings.shown import MeetingSummary, MeetingView
from roost.core.meetings.versions import Version
from roost.core.meetings.view import View
from roost.ports.store import Tx


@dataclass(frozen=True, slots=True)
class Seated:
    """A participant's log of a meeting; what its brain was told of it, and asked for."""

    participant: str
    meeting_id: str
    version: Version
    heard: Vector
    asked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Heard:
    """What came of posts and timers: what was put into inboxes, what has changed for whom.

    `unready`: agents that may not work now; what they were sent is still in their inboxes.
    """

    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...]
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acted:
    """What came of what somebody did. `number`: of the entry, among its author's; 0: none was written."""

    seated: Seated
    posted: tuple[Envelope, ...]
    changes: tuple[MeetingChange, ...]
    number: int = 0


async def watched(
    view: Callable[[], Awaitable[MeetingView]], wait: Callable[[str], Awaitable[MeetingView]], after: str | None,
    is_closing: Callable[[], bool] = lambda: False,
) -> AsyncIterator[MeetingView]:  # fmt: skip
    """Each view once, to the end. `view`: as it is; `wait`: as it is once it differs from the one with a cursor."""
    while True:
        found = await view() if after is None else await wait(after)
        if found.cursor != after:
            yield found
        if found.is_over or is_closing():
            return
        after = found.cursor


class MeetingStatements(Protocol):
    """A meeting in which nobody of this user's takes part is `NotFound`, as is one that does not exist.

    `op_id`: what the ids of all that is posted are made of. `awake`: agents to whom it can be handed over at once.
    What the rules of meetings refuse is Forbidden, and changes nothing.
    """

    def hear(
        self, tx: Tx, op_id: str, envelopes: Sequence[Envelope], ticks: Sequence[tuple[str, str]], now: float,
        awake: frozenset[str], /,
    ) -> Heard:  # fmt: skip
        """Take posts out of inboxes and into logs, and look at meetings whose time has come."""
        ...

    def call(self, tx: Tx, one: WriteEntry, now: float, awake: frozenset[str], /) -> Acted:
        """With a key that was used before: the meeting that is there; Conflict if that is another."""
        ...

    def act(
        self, tx: Tx, op_id: str, user_id: str, participant: str, meeting_id: str, make: Callable[[View], Body],
        now: float, key: str | None, awake: frozenset[str], /,
    ) -> Acted:  # fmt: skip
        """Write what `make` makes of the participant's view."""
        ...

    def join(
        self, tx: Tx, op_id: str, user_id: str, participant: str, meeting_id: str, now: float, awake: frozenset[str], /
    ) -> Acted:
        """Accept an invitation, or come late, or again, or to where an agent of one's own is, or to an open meeting."""
        ...

    def seated(self, tx: Tx, participant: str, meeting_id: str, /) -> Seated | None:
        """Whoever it belongs to: for the participant itself."""
        ...

    def seen(self, tx: Tx, user_id: str, meeting_id: str, seen_by: str | None, /) -> tuple[str, Seated | None, str]:
        """Who of the user's sees it, what, and the minutes; of what is long over there is nothing but these."""
        ...

    def under_way(self, tx: Tx, participant: str, /) -> int:
        """How many it has called that are not over."""
        ...

    def listed(
        self, tx: Tx, user_id: str, participant: str | None, phase: str | None, limit: int, before: str, /
    ) -> list[MeetingSummary]:
        """Newest first, those before `before`, each once."""
        ...
