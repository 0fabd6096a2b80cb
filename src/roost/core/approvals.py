"""Approvals: what a person is asked before a run goes on, and what they decide."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.envelopes import SendMail


class Question(StrEnum):
    CALL = "call"
    """May it be done?"""
    UNKNOWN = "unknown"
    """Was it done? The program ended in the middle of it."""
    STEP = "step"
    """The same of a brain's own step: its result is JSON."""


class Decision(StrEnum):
    GRANTED = "granted"
    """Do it; of what may have been done: do it again."""
    REFUSED = "refused"
    """Do not; whoever wanted it is told."""
    ANSWERED = "answered"
    """It is done, with this result."""


@dataclass(frozen=True, slots=True)
class Approval:
    """What a run waits for: a person's word on one call of a tool, or on one step."""

    approval_id: str
    user_id: str
    agent_id: str | None
    talk_session_id: str | None
    run_id: str
    step: int
    kind: Question
    tool: str
    arguments: Mapping[str, Any]
    created: datetime
    decision: Decision | None = None
    decided: datetime | None = None
    note: str | None = None
    """Why it was refused, or the result that was given."""

    def question(self, most: int = 500) -> str:
        """As a person is asked it, with so many characters of the arguments."""
        given = json.dumps(dict(self.arguments), ensure_ascii=False)
        call = self.tool + ("" if self.kind is Question.STEP else f" {given[:most]}{'…' * (len(given) > most)}")
        if self.kind is Question.CALL:
            return f"May this be done? {call}"
        return (
            f"The program ended in the middle of this: {call}. Was it done? If it was, say so with"
            f" `roost approvals answer {self.approval_id[-8:]} RESULT`."
        )


@dataclass(frozen=True, slots=True)
class Decided:
    """What a person has decided, and whether the run that waits for it was put to rest: then it is to be taken up."""

    approval: Approval
    rested: bool = False
    talker: str = ""
    """Whose talk it is, if it is one."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it is put on record, with the mail that tells of it, if there is one."""

    approval: Approval
    mail: SendMail | None
