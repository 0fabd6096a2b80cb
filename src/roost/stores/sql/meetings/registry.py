"""Queries about meetings: participants' logs, what users see, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.meetings.games.registry import GAMES, unknown_game
from roost.core.meetings.log import entries
from roost.core.meetings.log.bodies import Called
from roost.core.meetings.participants.participant_log import ParticipantLog
from roost.core.meetings.view.minutes import minutes as minutes_of
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.meetings.view.view import ParticipantStatus
from roost.core.talks.messages import at
from roost.errors import NotFound
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.meetings.rows import (
    FIELDS,
    OPEN,
    ParticipantRow,
    not_registered,
    version_of,
)

MOST_OPEN = 100
_SUMMARY = "m.meeting_id, m.topic, m.creator, m.phase, m.participant, m.status, m.called, m.over"
_SIZE = _SUMMARY.count(",") + 1


def load_log(tx: Tx, participant: str, meeting_id: str) -> ParticipantLog | None:
    """Return a participant's log, for the participant itself: the owner is not checked."""
    values = tx.one(
        f"SELECT {FIELDS} FROM meetings WHERE participant = :who AND meeting_id = :meeting AND minutes IS NULL",
        {"who": participant, "meeting": meeting_id},
    )
    if values is None:
        return None
    return _log_of(tx, (*values, None))


def find_for_user(tx: Tx, user_id: str, meeting_id: str, seen_by: str | None) -> tuple[str, ParticipantLog | None, str]:
    """Return the user's participant, its log, and the minutes; long after the end only the minutes are left."""
    rows = tx.read(
        "SELECT participant, minutes FROM meetings WHERE user_id = :user AND meeting_id = :meeting"
        " ORDER BY participant DESC",
        {"user": user_id, "meeting": meeting_id},
    )
    found = next((row for row in rows if seen_by in (None, row[0])), None)
    if found is None:
        raise unknown(meeting_id)
    if found[1] is not None:
        return found[0], None, found[1]
    seat = load_log(tx, found[0], meeting_id)
    if seat is None:
        _check_game(tx, found[0], meeting_id)
    return found[0], seat, ""


def _check_game(tx: Tx, participant: str, meeting_id: str) -> None:
    """Raise Unavailable if the game of a meeting is not registered here."""
    row = tx.one(
        "SELECT entry FROM meeting_log l JOIN meetings m ON m.participant = l.participant"
        " AND m.meeting_id = l.meeting_id WHERE l.participant = :who AND l.meeting_id = :meeting"
        " AND l.author = m.creator AND l.number = 1",
        {"who": participant, "meeting": meeting_id},
    )
    call = entries.from_json(row[0]).body if row else None
    if isinstance(call, Called) and call.game is not None and call.game not in GAMES:
        raise not_registered(call.game)


def views(tx: Tx, user_id: str, meeting_id: str) -> list[ParticipantLog]:
    """Return the logs of the user and of their agents, the user's first."""
    rows = tx.read(
        f"SELECT {FIELDS}, minutes FROM meetings WHERE user_id = :user AND meeting_id = :meeting"
        " ORDER BY participant DESC",
        {"user": user_id, "meeting": meeting_id},
    )
    if not rows:
        raise unknown(meeting_id)
    if rows[0][-1] is None:
        _check_game(tx, rows[0][0], meeting_id)
    found = (_log_of(tx, row) for row in rows)
    return [log for log in found if log is not None]


def overview(
    tx: Tx, user_id: str, participant: str | None, phase: str | None, limit: int, before: str
) -> list[tuple[MeetingSummary, ParticipantLog | None]]:
    """Return meetings as `listed` does, with the log of each; None for one that cannot be read."""
    rows = _listed(tx, f"{_SUMMARY}, {FIELDS}, minutes", user_id, participant, phase, limit, before)
    return [(_summary(row[:_SIZE]), _log_of(tx, row[_SIZE:])) for row in rows]


def _log_of(tx: Tx, row: Row) -> ParticipantLog | None:
    *values, minutes = row
    if minutes is not None:
        return None
    found = ParticipantRow(*values)
    version = version_of(tx, found)
    if unknown_game(version.log) is not None:
        return None
    return ParticipantLog(found.participant, found.meeting_id, version, *found.last_turn)


def listed(
    tx: Tx, user_id: str, participant: str | None, phase: str | None, limit: int, before: str
) -> list[MeetingSummary]:
    """Return meetings, newest first, before `before`, each once."""
    return [_summary(row) for row in _listed(tx, _SUMMARY, user_id, participant, phase, limit, before)]


def _listed(
    tx: Tx, columns: str, user_id: str, participant: str | None, phase: str | None, limit: int, before: str
) -> Sequence[Row]:
    whose = (
        ":participant"
        if participant is not None
        else ("(SELECT max(o.participant) FROM meetings o WHERE o.user_id = m.user_id AND o.meeting_id = m.meeting_id)")
    )
    only = " AND m.phase = :phase" if phase is not None else ""
    return tx.read(
        f"SELECT {columns} FROM meetings m"
        f" WHERE m.user_id = :user AND m.meeting_id < :before AND m.participant = {whose}{only}"
        " ORDER BY m.meeting_id DESC LIMIT :limit",
        {"user": user_id, "participant": participant, "phase": phase, "before": before, "limit": limit},
    )


def open_meetings(tx: Tx, participant: str) -> tuple[MeetingSummary, ...]:
    """Return up to 100 meetings it is in or invited to and that are not over, newest first."""
    rows = tx.read(
        f"SELECT {_SUMMARY} FROM meetings m WHERE m.participant = :who AND m.{OPEN} AND m.status IN ('in', 'invited')"
        " ORDER BY m.meeting_id DESC LIMIT :limit",
        {"who": participant, "limit": MOST_OPEN},
    )
    return tuple(_summary(row) for row in rows)


def count_called(tx: Tx, participant: str) -> int:
    """Return the number of meetings it called that are not over."""
    row = tx.one(
        f"SELECT count(*) FROM meetings WHERE participant = :who AND creator = :who AND {OPEN}", {"who": participant}
    )
    return int(row[0]) if row else 0


def meetings_of_agents(tx: Tx, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return the meetings that agents are in, newest first."""
    rows = bulk.read(
        tx,
        f"SELECT participant, meeting_id FROM meetings WHERE status = 'in' AND {OPEN} AND participant IN",
        [f"agent:{key}" for key in keys],
        " ORDER BY meeting_id DESC",
    )
    found: dict[str, list[str]] = {}
    for participant, meeting_id in rows:
        found.setdefault(participant.removeprefix("agent:"), []).append(meeting_id)
    return {key: tuple(ids) for key, ids in found.items()}


def compact(tx: Tx, participant: str, meeting_id: str) -> bool:
    """Keep only the minutes of a meeting that is over for a participant."""
    seat = load_log(tx, participant, meeting_id)
    if seat is None:
        return False
    view = seat.version.view
    own = view.participants.get(participant)
    if not view.is_over and own is not None and own.status in (ParticipantStatus.IN, ParticipantStatus.INVITED):
        return False
    ids = {"who": participant, "meeting": meeting_id, "minutes": minutes_of(view)}
    tx.write("UPDATE meetings SET minutes = :minutes WHERE participant = :who AND meeting_id = :meeting", ids)
    tx.write("DELETE FROM meeting_log WHERE participant = :who AND meeting_id = :meeting", ids)
    return True


def _summary(row: Row) -> MeetingSummary:
    meeting_id, topic, creator, phase, participant, status, called, over = row
    return MeetingSummary(
        meeting_id, topic, creator, phase, participant, status, at(called), None if over is None else at(over)
    )


def unknown(meeting_id: str) -> NotFound:
    return NotFound(f"there is no meeting {meeting_id!r:.80}: it was deleted, or it never existed")
