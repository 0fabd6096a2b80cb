"""Readers of a talk, who check at every step that they are shown each thing once."""

from __future__ import annotations

import roost
from tests.conftest import eventually
from tests.properties.conftest import Home


class Reader:
    """Follows a talk by its cursor, at whatever moments it is asked to look."""

    def __init__(self, home: Home, talk: str, limit: int = 200) -> None:
        self._home = home
        self._talk = talk
        self._limit = limit
        self.cursor: str | None = None
        self.shown: dict[int, roost.Message] = {}
        """In the order in which they were first shown."""

    def look(self) -> roost.Page:
        page = self._home.read(self._talk, self.cursor, self._limit)
        numbers = [m.seq for m in page.messages]
        assert numbers == sorted(set(numbers)), "one page shows a message twice or out of order"
        for message in page.messages:
            self._show(message)
        self.cursor = page.cursor
        return page

    def look_until_done(self) -> None:
        eventually(lambda: not (page := self.look()).running and not page.more_after)

    def _show(self, message: roost.Message) -> None:
        before = self.shown.get(message.seq)
        if before is not None:
            assert before.status == "streaming", "a message was shown again though it was final"
            assert message.content.startswith(before.content), "what was shown before has changed"
            assert (before.content, before.status) != (message.content, message.status), "nothing is new in it"
        else:
            assert message.seq == len(self.shown) + 1, "there is a gap"
        self.shown[message.seq] = message

    def texts(self) -> list[tuple[str, str]]:
        return [(m.sender, m.content) for m in self.shown.values()]


def said(turns: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    """Return the messages of a talk of such turns at its end; an answer without a word leaves no message."""
    return [
        entry for question, chunks in turns for entry in [("user", question), ("agent", "".join(chunks))] if entry[1]
    ]
