"""What a talk in the terminal waits for: a person's word on a call, asked in a line, and given in one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from roost.cli.find import Service
from roost.cli.text import line
from roost.core.approvals import Approval, Question
from roost.errors import RoostError

LOOK = 1.0
"""Seconds between two looks."""
NEWEST = 200
YES, NO = ("y", "yes"), ("n", "no")


class Questions:
    """Looks, on a thread of its own while the block runs, for what the talk waits for, and `tells` it once."""

    def __init__(self, service: Service, user: str, talk_id: str, tell: Callable[[str], object]) -> None:
        self._service = service
        self._user = user
        self._talk_id = talk_id
        self._tell = tell
        self._asked: Approval | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="roost-questions", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def decides(self, text: str) -> bool:
        """Whether what was typed is the word that is waited for."""
        asked, word = self._asked, text.strip().lower()
        if asked is None or word not in (*YES, *NO):
            return False
        decide = self._service.approvals.grant if word in YES else self._service.approvals.refuse
        try:
            decide(self._user, asked.approval_id)
        except RoostError as error:  # such as one that somebody else has decided
            self._tell(str(error))
        return True

    def _look(self) -> None:
        while not self._over.wait(LOOK):
            try:
                waiting = self._service.approvals.list(self._user, limit=NEWEST)
            except RoostError:
                continue  # whoever reads the talk is told
            asked = next((one for one in reversed(waiting) if one.talk_session_id == self._talk_id), None)
            before, self._asked = self._asked, asked
            if asked is not None and (before is None or asked.approval_id != before.approval_id):
                yes, no = ("allow it", "refuse") if asked.kind is Question.CALL else ("do it again", "give up")
                self._tell(f"{line(asked.question())} Type y to {yes}, n to {no}.")
