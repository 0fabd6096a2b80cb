"""The voice of a brain in a meeting: what it says there, and what it does in between."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import Any

from roost.core.meetings.bodies import Body, Said
from roost.errors import Forbidden
from roost.ports import Acts, Meeting


class Voice:
    """Of one turn. `said`: all that the brain has said so far, to which whoever hears it adds."""

    def __init__(self, meeting: Meeting, said: list[str], means: Callable[[], Acts]) -> None:
        self.meeting = meeting
        self._said = said
        self._means = means
        self._spoken = 0
        """How many of these were said in the meeting before the end of the turn."""
        meeting.write = self._act

    async def _act(self, meeting: Meeting, body: Body) -> None:
        """What was said before it is said before it, if it may be said."""
        means, words, spoken = self._means(), self._rest.strip(), len(self._said)
        if words:
            with suppress(Forbidden):
                await means.write_entry(meeting, Said(words))
                self._spoken = spoken
        await means.write_entry(meeting, body)

    @property
    def _rest(self) -> str:
        return "".join(self._said[self._spoken :])

    def last(self, now: int) -> list[Body]:
        """What comes of what it has said at last, when its turn is over."""
        return self.meeting.last_words(self._rest, now, spoke=self._spoken > 0)

    @cached_property
    def given(self) -> dict[str, Any]:
        """What tells how the meeting was when the turn began."""
        return self.meeting.given()
