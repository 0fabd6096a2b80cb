"""Lanes: envelopes of one lane are handled one at a time, in order."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope

_TICKS = "schedule:"
_LOG = "meeting-log:"
_TURN = "meeting:"


def tick_lane(schedule_id: str) -> str:
    """Return the lane of all ticks of a schedule: they run one after the other, even if the agent has free lanes."""
    return _TICKS + schedule_id


def is_tick_lane(lane: str) -> bool:
    return lane.startswith(_TICKS)


def log_lane(meeting_id: str) -> str:
    """Return the lane of log entries between participants; they are merged into logs without a brain."""
    return _LOG + meeting_id


def turn_lane(meeting_id: str) -> str:
    """Return the lane of turns of a participant's brain."""
    return _TURN + meeting_id


def turn_id(meeting_id: str, participant: str, number: int) -> str:
    """Return the id of the envelope of a turn."""
    return f"{meeting_id}:{participant}:{number}"


def meeting_of_turn(turn: str) -> str:
    return turn.partition(":")[0]


def is_post(envelope: Envelope) -> bool:
    return envelope.lane.startswith(_LOG)


def meeting_of(lane: str) -> str:
    return lane.removeprefix(_LOG).removeprefix(_TURN)
