"""What a turn does to meetings; done when it settles, or with what it sends before that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.core.meetings.bodies import Body
from roost.core.meetings.entries import Vector
from roost.core.priority import Priority
from roost.core.records import record

if TYPE_CHECKING:
    from roost.core.envelopes import Envelope

_LOG = "meeting-log:"
_TURN = "meeting:"


def log_lane(meeting_id: str) -> str:
    """Of what participants tell each other: it is taken into their logs, and no brain is asked."""
    return _LOG + meeting_id


def turn_lane(meeting_id: str) -> str:
    """Of turns, in which a brain takes part."""
    return _TURN + meeting_id


def turn_id(meeting_id: str, participant: str, number: int) -> str:
    """Of the envelope of a turn."""
    return f"{meeting_id}:{participant}:{number}"


def meeting_of_turn(turn: str) -> str:
    return turn.partition(":")[0]


def is_post(envelope: Envelope) -> bool:
    return envelope.lane.startswith(_LOG)


def meeting_of(lane: str) -> str:
    return lane.removeprefix(_LOG).removeprefix(_TURN)


@record(frozen=True, slots=True)
class WriteEntry:
    """An entry in the name of the participant. Of a call the meeting is a new one."""

    effect_id: str
    participant: str
    meeting_id: str
    body: Body
    hops: int = 0
    root: str = ""
    priority: Priority = Priority.NORMAL
    """Of the envelopes in which it travels."""
    key: str | None = None


@record(frozen=True, slots=True)
class EndTurn:
    """The turn of a participant is over. `heard`, `asked`: what it was told, and asked for; None: as before.

    `failed`: why it could not be done, if it could not: others are told, and go on without it.
    """

    effect_id: str
    participant: str
    meeting_id: str
    heard: Vector | None
    asked: tuple[str, ...]
    failed: str = ""


@record(frozen=True, slots=True)
class MeetingChange:
    """What has changed for one participant. `before`: the phase it was in, or nothing if it was not known."""

    participant: str
    meeting_id: str
    before: str
    phase: str
    at_once: bool = False
    """Whether its brain is to be asked at once."""
    is_asked: bool = False
    reason: str = ""
    """Why it failed."""


MeetingEffect = WriteEntry | EndTurn
