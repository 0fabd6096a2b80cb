"""Meetings: entries that are written, by people and by turns; with `hearing` and `registry`, all there is of them.

All of it happens in the log of one participant at a time. What others are to know of it is sent to them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from roost.core.addresses import unknown
from roost.core.envelopes import Envelope
from roost.core.meetings import shapes
from roost.core.meetings.attention import is_person
from roost.core.meetings.bodies import Accepted, Body, Called, Invited, Joined, Moved
from roost.core.meetings.effects import EndTurn, MeetingEffect, WriteEntry
from roost.core.meetings.view import Status, View
from roost.errors import Conflict, Forbidden, NotFound
from roost.ports import Acted, Seated, Tx
from roost.stores.statements.attendance import go
from roost.stores.statements.hearing import hear as hear
from roost.stores.statements.places import OPEN, Sitting
from roost.stores.statements.registry import listed as listed
from roost.stores.statements.registry import seated as seated
from roost.stores.statements.registry import seen as seen
from roost.stores.statements.registry import under_way as under_way
from roost.stores.statements.registry import unknown as unknown_meeting
from roost.stores.statements.rooms import Room

log = logging.getLogger("roost.meetings")

# --- what turns do -----------------------------------------------------------------------------------


def effects(tx: Tx, many: Sequence[MeetingEffect], now: float) -> tuple[Envelope, ...]:
    """What they have put into inboxes. What the meeting refuses meanwhile is left.

    What a turn does in one meeting is looked at together: others are told once of all of it.
    """
    posted: list[Envelope] = []
    for _, group in groupby(many, key=lambda one: (one.participant, one.meeting_id)):
        posted += _together(tx, list(group), now)
    return tuple(posted)


def _together(tx: Tx, many: Sequence[MeetingEffect], now: float) -> list[Envelope]:
    room = Room(tx, many[0].effect_id, now, frozenset({many[0].participant.removeprefix("agent:")}))
    for one in many:
        try:
            if type(one) is WriteEntry:
                _write(room, one)
            else:
                assert type(one) is EndTurn
                _end_turn(room, one)
        except (Forbidden, NotFound) as error:
            log.info("what a turn wrote is refused: %s", error, extra={"agent": one.participant})
    room.close()
    return room.posted


def _write(room: Room, one: WriteEntry) -> None:
    if isinstance(one.body, Called):
        _call(room, one)
        return
    sitting = room.find(one.participant, one.meeting_id)
    if sitting is None:
        raise unknown_meeting(one.meeting_id)
    room.write(sitting, one.body)


def _call(room: Room, one: WriteEntry) -> Sitting:
    sitting = room.find(one.participant, one.meeting_id) or room.make(
        one.participant, one.meeting_id, one.participant
    )  # fmt: skip
    place = sitting.place
    place.hops, place.root, place.key = one.hops, one.root or one.meeting_id, one.key
    room.priority = one.priority
    room.write(sitting, one.body)
    return sitting


def _end_turn(room: Room, one: EndTurn) -> None:
    sitting = room.find(one.participant, one.meeting_id)
    if sitting is None:
        return
    sitting.place.turn = ""
    if one.heard is not None:
        sitting.place.heard, sitting.place.asked = json.dumps(dict(one.heard)), json.dumps(list(one.asked))
    room.touch(sitting)
    if one.failed:
        go(room, sitting, one.failed)


# --- what people do ----------------------------------------------------------------------------------


def call(tx: Tx, one: WriteEntry, now: float, awake: frozenset[str]) -> Acted:
    room = Room(tx, one.effect_id, now, awake)
    if not is_person(one.participant) and room.config(one.participant) is None:
        raise unknown(one.participant.rpartition("/")[2])
    if one.key is not None and (there := _called_with(tx, one)) is not None:
        sitting = room.find(one.participant, there)
        if sitting is None:
            raise Conflict(f"the key {one.key!r:.80} was used for a meeting that is long over: use a new key")
        if (said := sitting.seat.view.call) is None or not _same(said, one.body):
            raise Conflict(f"the key {one.key!r:.80} was used for another meeting: use a new key for a new one")
        return _acted(sitting, room)
    sitting = _call(room, one)
    room.close()
    return _acted(sitting, room)


def act(
    tx: Tx, op_id: str, user_id: str, participant: str, meeting_id: str, make: Callable[[View], Body], now: float,
    key: str | None, awake: frozenset[str],
) -> Acted:  # fmt: skip
    room = Room(tx, op_id, now, awake)
    sitting = room.find(participant, meeting_id)
    if sitting is None or sitting.place.user_id != user_id:
        _explain(tx, user_id, participant, meeting_id)
        raise unknown_meeting(meeting_id)
    body = make(sitting.seat.view)
    if key is not None and _written_with(tx, sitting, key, body):
        return _acted(sitting, room)
    entry = room.write(sitting, body, key)
    room.close()
    return _acted(sitting, room, entry.number)


def join(
    tx: Tx, op_id: str, user_id: str, participant: str, meeting_id: str, now: float, awake: frozenset[str]
) -> Acted:
    room = Room(tx, op_id, now, awake)
    if not is_person(participant) and room.config(participant) is None:
        raise unknown(participant.rpartition("/")[2])
    sitting = room.find(participant, meeting_id) or _come(tx, room, user_id, participant, meeting_id)
    if sitting.place.participant == participant:
        room.write(sitting, Accepted() if sitting.seat.status is Status.INVITED else Joined())
    room.close()
    return _acted(sitting, room)


def _come(tx: Tx, room: Room, user_id: str, participant: str, meeting_id: str) -> Sitting:
    """To where one was not invited: by the hand of an own agent who is there, or into an open meeting."""
    row = tx.one(
        "SELECT participant FROM meetings WHERE user_id = :user AND meeting_id = :meeting AND status = 'in'"
        f" AND {OPEN} ORDER BY participant LIMIT 1",
        {"user": user_id, "meeting": meeting_id},
    )
    host = room.find(row[0], meeting_id) if row else None
    if host is not None:
        room.write(host, Invited(participant))
        room.route(host)
        return room.find(participant, meeting_id) or host  # an agent hears of it in its inbox, and comes by itself
    row = tx.one("SELECT creator FROM meetings WHERE meeting_id = :meeting LIMIT 1", {"meeting": meeting_id})
    host = room.find(row[0], meeting_id) if row else None
    if host is None or host.seat.view.call is None or not host.seat.view.call.open:
        raise unknown_meeting(meeting_id)
    made = room.make(participant, meeting_id, host.place.creator)
    made.seat.version = host.seat.version
    made.seat.fresh = {entry.id: entry for entry in host.seat.log}
    return made


def _called_with(tx: Tx, one: WriteEntry) -> str | None:
    row = tx.one(
        "SELECT meeting_id FROM meetings WHERE participant = :who AND key = :key",
        {"who": one.participant, "key": one.key},
    )
    return str(row[0]) if row else None


def _written_with(tx: Tx, sitting: Sitting, key: str, body: Body) -> bool:
    place = sitting.place
    row = tx.one(
        "SELECT author, number FROM meeting_log WHERE participant = :who AND meeting_id = :meeting AND key = :key",
        {"who": place.participant, "meeting": place.meeting_id, "key": key},
    )
    if row is None:
        return False
    there = next((e for e in sitting.seat.log if (e.author, e.number) == tuple(row)), None)
    if there is None or not _same(there.body, body):
        raise Conflict(f"the key {key!r:.80} was used for something else: use a new key")
    return True


def _same(there: Body, body: Body) -> bool:
    """Whether both say the same, but for what depends on when it is said."""
    if isinstance(there, Moved) and isinstance(body, Moved):
        body = replace(body, answers=there.answers)
    elif isinstance(there, Called) and isinstance(body, Called):
        body = replace(body, deadline=there.deadline)
    try:
        said, more = (json.dumps(shapes.plain(one), sort_keys=True) for one in (there, body))
    except (TypeError, ValueError, RecursionError):  # of what JSON cannot hold nothing is there
        return False
    return type(there) is type(body) and said == more


def _explain(tx: Tx, user_id: str, participant: str, meeting_id: str) -> None:
    """To whoever knows of the meeting through its agents, or has only its minutes left."""
    rows = tx.read(
        "SELECT participant, minutes IS NULL FROM meetings WHERE user_id = :user AND meeting_id = :meeting",
        {"user": user_id, "meeting": meeting_id},
    )
    if any(row[0] == participant for row in rows):
        raise Forbidden(f"the meeting {meeting_id!r:.80} is over, and only its minutes are left: call another one")
    if rows:
        raise Forbidden(f"{participant} does not take part in the meeting: join it first")


def _acted(sitting: Sitting, room: Room, number: int = 0) -> Acted:
    place = sitting.place
    heard, asked = place.told
    seated = Seated(place.participant, place.meeting_id, sitting.seat.version, heard, asked)
    return Acted(seated, tuple(room.posted), tuple(room.changes), number)
