"""Approvals in `roost chat`: a question printed in one line and answered in one line."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Self

from roost.cli.app.connect import Service
from roost.core.journal.approvals import Approval, Question, visible
from roost.errors import RoostError

POLL = 1.0
"""Seconds between two polls."""
NEWEST = 200
YES, NO, ALL = ("y", "yes"), ("n", "no"), ("a", "all")


class ApprovalPrompt:
    """Poller for approvals of a talk, on its own thread while the block runs; passes each question to `tell` once."""

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
        """Handle a typed line if it answers the open question or asks for all arguments; return True if it does."""
        asked, word = self._asked, text.strip().lower()
        if asked is None or word not in (*YES, *NO, *ALL):
            return False
        if word in ALL:
            self._tell(visible(dict(asked.arguments), indent=2))
            return True
        decide = self._service.approvals.grant if word in YES else self._service.approvals.refuse
        try:
            decide(self._user, asked.approval_id)
        except RoostError as error:  # such as an approval that someone else decided
            self._tell(str(error))
        return True

    def _look(self) -> None:
        while not self._over.wait(POLL):
            try:
                waiting = self._service.approvals.list(self._user, limit=NEWEST)
            except RoostError:
                continue  # the reader of the talk reports it
            asked = next((one for one in reversed(waiting) if one.talk_session_id == self._talk_id), None)
            before, self._asked = self._asked, asked
            if asked is not None and (before is None or asked.approval_id != before.approval_id):
                yes, no = ("allow it", "refuse") if asked.kind is Question.CALL else ("do it again", "give up")
                more = ", a to see all of it" if asked.is_folded else ""
                self._tell(f"{asked.question()} Type y to {yes}, n to {no}{more}.")
