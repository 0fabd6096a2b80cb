"""Membership in meetings: agents leave when they are stopped or deleted, and rejoin when they are started."""

from __future__ import annotations

from roost.core.meetings.log.bodies import Body, Declined, Ended, Failed, Joined, Left
from roost.core.meetings.participants.decisions import without_its_creator
from roost.core.meetings.view.view import ParticipantStatus, Phase
from roost.errors import Forbidden
from roost.ports import Tx
from roost.stores.sql.meetings.outcomes import Received
from roost.stores.sql.meetings.receive import merged_posts, waiting_posts
from roost.stores.sql.meetings.rows import OPEN, LoadedSeat
from roost.stores.sql.meetings.session import MeetingSession

STOPPED = "it was stopped"
"""Reason for leaving: a started agent rejoins meetings it left for this reason."""


def remove(session: MeetingSession, loaded: LoadedSeat, reason: str) -> None:
    """Remove a participant; its last entry gives the others the reason."""
    seat, reason = loaded.seat, reason[:2_000]
    view = seat.view
    if view.is_over or seat.status not in (ParticipantStatus.INVITED, ParticipantStatus.IN):
        return
    body: Body = Declined(reason) if seat.status is ParticipantStatus.INVITED else Left(reason)
    if view.phase is Phase.CALLING and view.chair == seat.me:  # no other participant may be left to write it
        body = Failed(without_its_creator(seat.me, reason))
    try:
        session.write(loaded, body)
    except Forbidden:  # the last participant
        session.write(loaded, Ended())


def leave(tx: Tx, op_id: str, participant: str, now: float) -> Received:
    """Leave all meetings of a stopped agent. Open invitations stay, since it may be started in time."""
    session = MeetingSession(tx, op_id, now)
    for loaded in _loaded_seats(tx, session, participant, ParticipantStatus.IN):
        remove(session, loaded, STOPPED)
    session.close()
    return Received(tuple(session.posted), tuple(session.changes))


def rejoin(tx: Tx, op_id: str, participant: str, now: float) -> Received:
    """Rejoin the meetings of a started agent and ask for missed entries; the others refuse it if it is too late."""
    session = MeetingSession(tx, op_id, now)
    for loaded in _loaded_seats(tx, session, participant, ParticipantStatus.LEFT):
        if loaded.seat.view.participants[participant].reason == STOPPED:
            session.write(loaded, Joined())
    session.close()
    return Received(tuple(session.posted), tuple(session.changes))


def leave_deleted(tx: Tx, op_id: str, participant: str, reason: str, now: float) -> Received:
    """Leave all meetings of a deleted agent, and delete everything about it."""
    session, key = MeetingSession(tx, op_id, now), participant.removeprefix("agent:")
    for e, post in merged_posts(waiting_posts(tx, key)):  # others may wait for its reply
        session.receive(participant, e.sender, post, e.hops, e.root)
    for loaded in (*_loaded_seats(tx, session, participant), *session.touched_by(participant)):
        remove(session, loaded, reason)
    session.close()
    for table, column in (("meetings", "participant"), ("meeting_log", "participant"), ("timers", "address")):
        tx.write(f"DELETE FROM {table} WHERE {column} = :who", {"who": participant})
    return Received(
        tuple(e for e in session.posted if e.address != key),
        tuple(change for change in session.changes if change.participant != participant),
    )


def _loaded_seats(
    tx: Tx, session: MeetingSession, participant: str, status: ParticipantStatus | None = None
) -> list[LoadedSeat]:
    """Load its seats in meetings that are not over; with a status, only those with that status."""
    has_status = "" if status is None else " AND status = :status"
    rows = tx.read(
        f"SELECT meeting_id FROM meetings WHERE participant = :who AND {OPEN}{has_status} ORDER BY meeting_id",
        {"who": participant, "status": status},
    )
    found = (session.find(participant, row[0]) for row in rows)
    return [loaded for loaded in found if loaded is not None]
