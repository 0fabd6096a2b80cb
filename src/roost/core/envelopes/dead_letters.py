"""Dead letters: envelopes that could not be handled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class LetterKind(StrEnum):
    """Kind of a dead letter: an envelope, an event without subscribers, an effect that could not be sent, or a fact."""

    TALK = "talk"
    TASK = "task"
    MAIL = "mail"
    EVENT = "event"
    MEETING = "meeting"
    ANSWER = "answer"
    OUTGOING = "outgoing"
    WEBHOOK = "webhook"


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Envelope that could not be handled, with the reason and the number of attempts."""

    letter_id: str
    user_id: str
    agent_id: str | None
    """Owner of the inbox; for `outgoing`, the sender."""
    kind: LetterKind
    fault: str
    """One of `core.failures.faults`, or expired, full, untaken, undeliverable."""
    reason: str
    """Reason in one sentence for users."""
    attempts: int
    created: datetime
    envelope: Mapping[str, Any]
    """Content that is posted again by a retry."""
    run_id: str | None = None
    """Run of its last attempt, if it is among the last runs of its agent before."""

    @property
    def origin(self) -> str:
        """Return the id of its origin."""
        kept: Mapping[str, Any] = self.envelope.get("envelope") or self.envelope
        named = (kept.get(name) for name in ("root", "envelope_id", "event_id", "mail_id"))
        return str(next(name for name in named if name))
