"""A participant's log of a meeting, as it is read from the store."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.meetings.log.entries import Vector
from roost.core.meetings.participants.versions import Version


@dataclass(frozen=True, slots=True)
class ParticipantLog:
    """A participant's log of a meeting, with the entries its brain was given and asked about."""

    participant: str
    meeting_id: str
    version: Version
    heard: Vector
    asked: tuple[str, ...]
