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
YES, NO, ALL, ALWAYS = ("y", "yes"), ("n", "no"), ("a", "all"), ("always",)


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
        if asked is None or word not in (*YES, *NO, *ALL, *ALWAYS):
            return False
        if word in ALL:
            self._tell(visible(dict(asked.arguments), indent=2))
            return True
        try:
            self._decide(asked.approval_id, word)
        except RoostError as error:  # such as an approval that someone else decided
            self._tell(str(error))
        return True

    def _decide(self, approval_id: str, word: str) -> None:
        approvals = self._service.approvals
        if word in ALWAYS:
            approvals.allow_always(self._user, approval_id)
        elif word in YES:
            approvals.approve(self._user, approval_id)
        else:
            approvals.decline(self._user, approval_id)

    def _look(self) -> None:
        while not self._over.wait(POLL):
            try:
                waiting = self._service.approvals.list(self._user, limit=NEWEST)
            except RoostError:
                continue  # the reader of the talk reports it
            asked = next((one for one in reversed(waiting) if one.talk_session_id == self._talk_id), None)
            before, self._asked = self._asked, asked
            if asked is not None and (before is None or asked.approval_id != before.approval_id):
                self._tell(f"{asked.question()} {_choices(asked)}")


def _choices(asked: Approval) -> str:
    """Return the words that may be typed."""
    more = ", a to see all of it" if asked.is_folded else ""
    if asked.kind is not Question.CALL:
        return f"Type y to do it again, n to give up{more}."
    return f"Type y to approve, n to decline, always to allow this tool from now on{more}."
