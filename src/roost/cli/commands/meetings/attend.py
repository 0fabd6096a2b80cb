"""`roost meetings attend`: typed lines are posts or moves in a meeting."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from roost.cli.app.connect import Service
from roost.cli.app.type_ahead import TypeAhead
from roost.cli.render.meetings import new_lines
from roost.cli.render.text import single_line
from roost.core.meetings.view.shown import MeetingView
from roost.errors import RoostError

MOVING = "Your move (a number; other text is posted): "
SPEAKING = "> "


class MeetingInput:
    """Input of a person in a meeting. A line is sent when typed, or, from a pipe, when it is the user's turn."""

    def __init__(self, service: Service, user: str, meeting_id: str) -> None:
        self._meetings = service.meetings
        self._user = user
        self._me = f"user:{user}"
        self._meeting_id = meeting_id
        self._terminal = sys.stdin.isatty()
        self._game = False
        self._asked = False

    def attend(self, views: Iterable[MeetingView], gone: Callable[[], bool]) -> MeetingView | None:
        """Take part until the meeting ends; return its last view.

        `gone` is called when the input ends and returns True to keep watching.
        """
        before, here = None, True
        with TypeAhead(self._act, reading=self._terminal) as typing:
            for view in views:
                self._print_news(before, view)
                before, self._game = view, view.game is not None
                if here and (typing.over or (self._is_next(view) and not self._terminal and not self._act_from_pipe())):
                    here = False
                    if not gone():
                        break
        return before

    def _is_next(self, view: MeetingView) -> bool:
        return view.mover == self._me if view.game else self._me in view.speakers

    def _print_news(self, before: MeetingView | None, now: MeetingView) -> None:
        for text in new_lines(before, now, self._user):
            self._print(text)
        if self._is_next(now) and self._terminal and not self._asked:
            print(MOVING if now.mover == self._me else SPEAKING, end="", flush=True)
            self._asked = True

    def _act_from_pipe(self) -> bool:
        """Send lines until one is accepted; return False at the end of the input."""
        while text := sys.stdin.readline():
            if self._act(text):
                return True
        return False

    def _act(self, typed: str) -> bool:
        """Execute a typed line; return True if it was accepted."""
        self._asked = False
        text = typed.strip()
        try:
            if self._game and text.isdecimal() and len(text) < 4:
                self._meetings.move(self._user, self._meeting_id, {"cell": int(text)})
            elif text:
                self._meetings.say(self._user, self._meeting_id, text)
        except RoostError as error:
            self._print(f"Refused: {single_line(str(error))}")
            return False
        return bool(text)

    def _print(self, text: str) -> None:
        print("\n" if self._asked else "", text, sep="", flush=True)
        self._asked = False
