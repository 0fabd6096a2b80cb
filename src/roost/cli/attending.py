"""A person takes part in a meeting, in the terminal or through a pipe: what is typed is said, or is a move."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from roost.cli.find import Service
from roost.cli.meeting_text import news
from roost.cli.text import line
from roost.cli.typing_ahead import Typing
from roost.core.meetings.shown import MeetingView
from roost.errors import RoostError

MOVING = "Your move (a number; words are said): "
SPEAKING = "> "


class Attending:
    """In a game a number is a move. In a terminal a line counts when it is typed, from a pipe when it is one's turn."""

    def __init__(self, service: Service, user: str, meeting_id: str) -> None:
        self._meetings = service.meetings
        self._user = user
        self._me = f"user:{user}"
        self._meeting_id = meeting_id
        self._terminal = sys.stdin.isatty()
        self._game = False
        self._asked = False

    def attend(self, views: Iterable[MeetingView], gone: Callable[[], bool]) -> MeetingView | None:
        """To the end of the meeting; the last view of it.

        `gone`: called when the input has ended; whether to go on looking.
        """
        before, here = None, True
        with Typing(self._act, reading=self._terminal) as typing:
            for view in views:
                self._tell(before, view)
                before, self._game = view, view.game is not None
                if here and (typing.over or (self._is_next(view) and not self._terminal and not self._act_from_pipe())):
                    here = False
                    if not gone():
                        break
        return before

    def _is_next(self, view: MeetingView) -> bool:
        return view.mover == self._me if view.game else self._me in view.speakers

    def _tell(self, before: MeetingView | None, now: MeetingView) -> None:
        for text in news(before, now, self._user):
            self._print(text)
        if self._is_next(now) and self._terminal and not self._asked:
            print(MOVING if now.mover == self._me else SPEAKING, end="", flush=True)
            self._asked = True

    def _act_from_pipe(self) -> bool:
        """Line by line until one counts; False: there are no more."""
        while text := sys.stdin.readline():
            if self._act(text):
                return True
        return False

    def _act(self, typed: str) -> bool:
        """Do what was typed; whether it counts."""
        self._asked = False
        text = typed.strip()
        try:
            if self._game and text.isdecimal() and len(text) < 4:
                self._meetings.move(self._user, self._meeting_id, {"cell": int(text)})
            elif text:
                self._meetings.say(self._user, self._meeting_id, text)
        except RoostError as error:
            self._print(f"Refused: {line(str(error))}")
            return False
        return bool(text)

    def _print(self, text: str) -> None:
        print("\n" if self._asked else "", text, sep="", flush=True)
        self._asked = False
