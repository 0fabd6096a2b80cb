"""Attendance: agents that are stopped or deleted go from their meetings, and those that are started come back."""

from __future__ import annotations

from roost.core.meetings.bodies import Body, Declined, Ended, Failed, Joined, Left
from roost.core.meetings.view import Phase, Status
from roost.errors import Forbidden
from roost.ports import Heard, Tx
from roost.stores.statements.hearing import gathered, unheard
from roost.stores.statements.places import OPEN, Sitting
from roost.stores.statements.rooms import Room

STOPPED = "it was stopped"
"""Why it has left: whoever is started again comes back to where this is the reason."""


def go(room: Room, sitting: Sitting, reason: str) -> None:
    """It takes part no more, and all others are told why."""
    seat, reason = sitting.seat, reason[:2_000]
    view = seat.view
    if view.is_over or seat.status not in (Status.INVITED, Status.IN):
        return
    body: Body = Declined(reason) if seat.status is Status.INVITED else Left(reason)
    if view.phase is Phase.CALLING and view.chair == seat.me:  # nobody else may be there to say so
        body = Failed(f"{seat.me}, who called the meeting, has left: {reason}"[:2_000])
    try:
        room.write(sitting, body)
    except Forbidden:  # it is the last one
        room.write(sitting, Ended())


def leave(tx: Tx, op_id: str, participant: str, now: float) -> Heard:
    """It is stopped: those it meets are told. Invitations that are open stay so, as it may be started in time."""
    room = Room(tx, op_id, now)
    for sitting in _sittings(tx, room, participant, Status.IN):
        go(room, sitting, STOPPED)
    room.close()
    return Heard(tuple(room.posted), tuple(room.changes))


def come_back(tx: Tx, op_id: str, participant: str, now: float) -> Heard:
    """It is started, and asks for what it has missed; whether it is too late, it is told by the others."""
    room = Room(tx, op_id, now)
    for sitting in _sittings(tx, room, participant, Status.LEFT):
        if sitting.seat.view.participants[participant].reason == STOPPED:
            room.write(sitting, Joined())
    room.close()
    return Heard(tuple(room.posted), tuple(room.changes))


def abandon(tx: Tx, op_id: str, participant: str, reason: str, now: float) -> Heard:
    """It is deleted: those it meets are told, and nothing of it is left."""
    room, key = Room(tx, op_id, now), participant.removeprefix("agent:")
    for e, post in gathered(unheard(tx, key)):  # others may wait for its answer
        room.hear(participant, e.sender, post, e.hops, e.root)
    for sitting in (*_sittings(tx, room, participant), *room.touched_by(participant)):
        go(room, sitting, reason)
    room.close()
    for table, column in (("meetings", "participant"), ("meeting_log", "participant"), ("timers", "address")):
        tx.write(f"DELETE FROM {table} WHERE {column} = :who", {"who": participant})
    return Heard(
        tuple(e for e in room.posted if e.address != key),
        tuple(change for change in room.changes if change.participant != participant),
    )


def _sittings(tx: Tx, room: Room, participant: str, status: Status | None = None) -> list[Sitting]:
    """Where it sits in meetings that are not over; with a status, those where it has that one."""
    so = "" if status is None else " AND status = :status"
    rows = tx.read(
        f"SELECT meeting_id FROM meetings WHERE participant = :who AND {OPEN}{so} ORDER BY meeting_id",
        {"who": participant, "status": status},
    )
    found = (room.find(participant, row[0]) for row in rows)
    return [sitting for sitting in found if sitting is not None]
