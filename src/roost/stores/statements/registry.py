"""Looking at meetings: where participants sit, what people see of them, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence

from roost.core.meetings.minutes import minutes as minutes_of
from roost.core.meetings.shown import MeetingSummary
from roost.core.meetings.view import Status
from roost.core.messages import at
from roost.errors import NotFound
from roost.ports import Row, Seated, Tx
from roost.stores.statements import bulk
from roost.stores.statements.places import FIELDS, OPEN, Place, version_of


def seated(tx: Tx, participant: str, meeting_id: str) -> Seated | None:
    """Where a participant sits, whoever it belongs to: for its own turn. None: nowhere."""
    row = tx.one(
        f"SELECT {FIELDS} FROM meetings WHERE participant = :who AND meeting_id = :meeting AND minutes IS NULL",
        {"who": participant, "meeting": meeting_id},
    )
    if row is None:
        return None
    place = Place(*row)
    heard, asked = place.told
    return Seated(participant, meeting_id, version_of(tx, place), heard, asked)


def seen(tx: Tx, user_id: str, meeting_id: str, seen_by: str | None) -> tuple[str, Seated | None, str]:
    """Of the user's participants the one that is named, or the user, or an agent.

    Who that is, where it sits, and the minutes that are left of what is long over.
    """
    rows = tx.read(
        "SELECT participant, minutes FROM meetings WHERE user_id = :user AND meeting_id = :meeting"
        " ORDER BY participant DESC",
        {"user": user_id, "meeting": meeting_id},
    )
    found = next((row for row in rows if seen_by in (None, row[0])), None)
    if found is None:
        raise unknown(meeting_id)
    return found[0], seated(tx, found[0], meeting_id) if found[1] is None else None, found[1] or ""


def listed(
    tx: Tx, user_id: str, participant: str | None, phase: str | None, limit: int, before: str
) -> list[MeetingSummary]:
    """Newest first, each once: as the user takes part in it, or else an agent of theirs."""
    whose = ":participant" if participant is not None else (
        "(SELECT max(o.participant) FROM meetings o WHERE o.user_id = m.user_id AND o.meeting_id = m.meeting_id)"
    )  # fmt: skip
    only = " AND m.phase = :phase" if phase is not None else ""
    rows = tx.read(
        "SELECT m.meeting_id, m.topic, m.creator, m.phase, m.participant, m.status, m.called, m.over FROM meetings m"
        f" WHERE m.user_id = :user AND m.meeting_id < :before AND m.participant = {whose}{only}"
        " ORDER BY m.meeting_id DESC LIMIT :limit",
        {"user": user_id, "participant": participant, "phase": phase, "before": before, "limit": limit},
    )
    return [_summary(row) for row in rows]


def under_way(tx: Tx, participant: str) -> int:
    """How many it has called that are not over."""
    row = tx.one(
        f"SELECT count(*) FROM meetings WHERE participant = :who AND creator = :who AND {OPEN}", {"who": participant}
    )  # fmt: skip
    return int(row[0]) if row else 0


def of_agents(tx: Tx, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The meetings that agents are in, the newest first."""
    rows = bulk.among(
        tx, f"SELECT participant, meeting_id FROM meetings WHERE status = 'in' AND {OPEN} AND participant IN",
        [f"agent:{key}" for key in keys], " ORDER BY meeting_id DESC",
    )  # fmt: skip
    found: dict[str, list[str]] = {}
    for participant, meeting_id in rows:
        found.setdefault(participant.removeprefix("agent:"), []).append(meeting_id)
    return {key: tuple(ids) for key, ids in found.items()}


def compact(tx: Tx, participant: str, meeting_id: str) -> bool:
    """Of a meeting that is over for a participant only the minutes are kept."""
    kept = seated(tx, participant, meeting_id)
    if kept is None:
        return False
    view = kept.version.view
    one = view.participants.get(participant)
    if not view.is_over and one is not None and one.status in (Status.IN, Status.INVITED):
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
