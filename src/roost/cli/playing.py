"""A person plays in a meeting, in the terminal or through a pipe: a number is a move, anything else is said."""

from __future__ import annotations

import sys

from roost.cli.meeting_text import news
from roost.cli.stage import Stage
from roost.cli.text import line
from roost.cli.typing_ahead import Typing
from roost.core.meetings.shown import MeetingView
from roost.errors import RoostError

PROMPT = "Your move (a number; words are said): "


class Player:
    """`host`: in whose name the meeting is ended when the person has gone."""

    def __init__(self, here: Stage, meeting_id: str, host: str) -> None:
        self._here = here
        self._meeting_id = meeting_id
        self._host = host
        self._terminal = sys.stdin.isatty()
        self._asked = False
        self._gone = False

    def play(self) -> MeetingView | None:
        """To the end of the game, or of the input; the meeting as it is then."""
        me, before = f"user:{self._here.user}", None
        with Typing(self._act, reading=self._terminal) as typing:
            for view in self._here.views(self._meeting_id, me):
                self._tell(before, view, mine=view.mover == me)
                before = view
                if typing.over or (view.mover == me and not self._terminal and not self._act_from_pipe()):
                    self._go()
        return before

    def _tell(self, before: MeetingView | None, now: MeetingView, *, mine: bool) -> None:
        for text in news(before, now, self._here.user):
            self._print(text)
        if mine and self._terminal and not self._asked:
            print(PROMPT, end="", flush=True)
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
        text, meetings, user = typed.strip(), self._here.service.meetings, self._here.user
        try:
            if text.isdecimal() and len(text) < 4:
                meetings.move(user, self._meeting_id, {"cell": int(text)})
            elif text:
                meetings.say(user, self._meeting_id, text)
        except RoostError as error:
            self._print(f"Refused: {line(str(error))}")
            return False
        return bool(text)

    def _go(self) -> None:
        if not self._gone:
            self._gone = True
            self._print("You have gone.")
            self._here.service.meetings.end(self._here.user, self._meeting_id, "The player has gone.", by=self._host)

    def _print(self, text: str) -> None:
        print("\n" if self._asked else "", text, sep="", flush=True)
        self._asked = False
