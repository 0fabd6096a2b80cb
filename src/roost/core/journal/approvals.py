"""Approvals: questions that a person decides before a run continues."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.envelopes.effects import SendMail

LONG = 500
"""Characters of an argument that a one-line question shows."""


def visible(value: object, indent: int | None = None) -> str:
    """Return a value as JSON text in which invisible and bidirectional characters are escaped."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    if text.replace("\n", "").isprintable():
        return text
    return "".join(
        character if character == "\n" or character.isprintable() else json.dumps(character)[1:-1] for character in text
    )


def folded(text: str, most: int = LONG) -> str:
    """Return the text; a long one is cut, with a remark that gives its length."""
    return text if len(text) <= most else f"{text[:most]}… [{len(text):,} characters in all]"


def shown_name(name: str) -> str:
    """Return the name of a tool or step with invisible characters escaped."""
    return visible(name)[1:-1]


class Question(StrEnum):
    CALL = "call"
    """May it be executed?"""
    UNKNOWN = "unknown"
    """Was it executed? The program ended during it."""
    STEP = "step"
    """Was a step of the brain executed? Its result is JSON."""


class Decision(StrEnum):
    APPROVED = "approved"
    """Execute it, or execute it again."""
    ALLOWED = "allowed"
    """Execute it, by a standing permission that was given with this decision or before it."""
    DECLINED = "declined"
    """Do not execute it; the caller gets an error."""
    ANSWERED = "answered"
    """Executed already, with this result."""


@dataclass(frozen=True, slots=True)
class Approval:
    """Decision that a run waits for, about one tool call or step."""

    approval_id: str
    user_id: str
    agent_id: str | None
    talk_session_id: str | None
    """None if there is no talk, or if it is another user's."""
    run_id: str | None
    """None if the talk is another user's."""
    step: int
    kind: Question
    tool: str
    arguments: Mapping[str, Any]
    created: datetime
    decision: Decision | None = None
    decided: datetime | None = None
    note: str | None = None
    """Reason for declining, or the result."""
    profile: str = ""
    """Profile of the run."""

    def seen_by_owner(self, talker: str | None) -> Approval:
        """Return what the user who decides may see, if `talker` is the user of the talk.

        What a shared agent asks in the talk of another user has neither the id of this talk nor that of its run.
        """
        if self.talk_session_id is None or talker == self.user_id:
            return self
        return replace(self, talk_session_id=None, run_id=None)

    def values(self, indent: int | None = None) -> dict[str, str]:
        """Return each argument as JSON text with every character visible; see `visible`."""
        return {visible(name): visible(value, indent) for name, value in self.arguments.items()}

    @property
    def is_folded(self) -> bool:
        """Return whether `question` cuts an argument."""
        return any(len(text) > LONG for text in self.values().values())

    def question(self) -> str:
        """Return the question in one line, with all arguments; long ones are cut."""
        given = ", ".join(f"{name}: {folded(text)}" for name, text in self.values().items())
        call = shown_name(self.tool) + ("" if self.kind is Question.STEP else f" {{{given}}}")
        if self.kind is Question.CALL:
            return f"May this be done? {call}"
        return (
            f"The program ended in the middle of this: {call}. Was it done? If it was, say so with"
            f" `roost approvals answer {self.approval_id[-8:]} RESULT`."
        )


@dataclass(frozen=True, slots=True)
class TalkApproval:
    """Approval of a talk, with the message it belongs to."""

    approval: Approval
    seq: int | None
    """Number of the answer that asked; None while there is none. If none was written, of the message before it."""
    is_pending: bool
    """True if a run waits for the decision."""


@dataclass(frozen=True, slots=True)
class Permission:
    """Standing permission of an agent, or of a profile in talks without an agent, to call a tool without asking."""

    user_id: str
    tool: str
    agent_id: str | None
    profile: str | None
    """Set if there is no agent."""
    created: datetime


@dataclass(frozen=True, slots=True)
class Decided:
    """Decision of a person. `was_parked`: its run is suspended and must be resumed."""

    approval: Approval
    was_parked: bool = False
    talker: str = ""
    """User of the talk, if it is one."""
    is_new: bool = True
    """False if the same was decided before."""

    @property
    def shown(self) -> Approval:
        """Return the approval as the user who decided may see it."""
        return self.approval.seen_by_owner(self.talker)


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """Approval to store, with the mail that announces it, if any."""

    approval: Approval
    mail: SendMail | None
