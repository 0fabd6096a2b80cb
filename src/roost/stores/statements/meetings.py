"""Meetings: posts that are heard, entries that are written, turns that end; and what people see of them.

All of it happens in the log of one participant at a time. What others are to know of it is sent to them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from roost.core.addresses import unknown
from roost.core.envelopes import Envelope
from roost.core.meetings import posts
from roost.core.meetings.attention import is_person
from roost.core.meetings.bodies import Accepted, Body, Called, Declined, Ended, Invited, Joined, Left
from roost.core.meetings.effects import EndTurn, MeetingEffect, WriteEntry, is_post
from roost.core.meetings.minutes import minutes as minutes_of
from roost.core.meetings.posts import Post
from roost.core.meetings.shown import MeetingSummary
from roost.core.meetings.view import Status, View
from roost.core.messages import at
from roost.errors import Conflict, Forbidden, Invalid, NotFound
from roost.ports import Acted, Heard, Row, Seated, Tx
from roost.stores.statements import bulk
from roost.stores.statements.envelopes import ENVELOPE, envelope_of
from roost.stores.statements.rooms import COLUMNS, LONGEST_SYNC, TIMER, Place, Room, Sitting, version_of

log = logging.getLogger("roost.meetings")

_OPEN = "phase IN ('calling', 'running')"


# --- what comes by itself ----------------------------------------------------------------------------


def hear(
    tx: Tx, op_id: str, envelopes: Sequence[Envelope], ticks: Sequence[tuple[str, str]], now: float,
    awake: frozenset[str],
) -> Heard:  # fmt: skip
    room = Room(tx, op_id, now, awake)
    agents = {e.address for e in envelopes} | {who.removeprefix("agent:") for who, _ in ticks if not is_person(who)}
    ready = _ready(tx, sorted(agents))
    ids = [e.envelope_id for e in envelopes if e.address in ready]
    gone = {row[0] for row in bulk.change(tx, "DELETE FROM inbox WHERE envelope_id IN", ids, " RETURNING envelope_id")}
    for e, post in _gathered(e for e in sorted(envelopes, key=lambda one: one.created) if e.envelope_id in gone):
        room.hear(f"agent:{e.address}", e.sender, post, e.hops, e.root)
    for participant, meeting_id in ticks:
        _tick(tx, room, participant, meeting_id, ready, now)
    room.close()
    unready = tuple(sorted({e.address for e in envelopes} - ready))
    return Heard(tuple(room.posted), tuple(room.changes), unready)


def _ready(tx: Tx, keys: Sequence[str]) -> set[str]:
    """Agents that may work now: neither asleep nor stopped nor paused."""
    rows = bulk.among(
        tx, "SELECT address, state, paused FROM agents WHERE address IN", keys, f" ORDER BY address{tx.for_update}"
    )  # fmt: skip
    return {address for address, state, paused in rows if state == "idle" and not paused}


def _gathered(envelopes: Iterable[Envelope]) -> list[tuple[Envelope, Post]]:
    """What they say; what one tells another about itself is heard at once, however many envelopes it came in."""
    found: dict[tuple[str, ...], tuple[Envelope, Post]] = {}
    for e in envelopes:
        try:
            post = posts.from_json(e.body)
        except Invalid as error:
            log.warning("a post of a meeting is left: %s", error, extra={"agent": e.address})
            continue
        is_plain = not post.is_answer and post.digest is None
        name = (e.address, e.sender, post.meeting, post.creator) if is_plain else (e.envelope_id,)
        first, before = found.get(name, (e, None))
        found[name] = (first, post if before is None else replace(before, entries=before.entries + post.entries))
    return list(found.values())


def _tick(tx: Tx, room: Room, participant: str, meeting_id: str, ready: set[str], now: float) -> None:
    tx.write("DELETE FROM timers WHERE address = :who AND key = :key", {"who": participant, "key": TIMER + meeting_id})
    if not is_person(participant) and participant.removeprefix("agent:") not in ready:
        ids = {"who": participant, "meeting": meeting_id}  # when it is back, it is looked at
        tx.write("UPDATE meetings SET timer = NULL WHERE participant = :who AND meeting_id = :meeting", ids)
        return
    sitting = room.find(participant, meeting_id)
    if sitting is None:
        return
    place = sitting.place
    place.timer, sitting.before.timer = None, -1.0
    room.touch(sitting)
    if place.turn and tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", {"id": place.turn}) is None:
        place.turn = ""  # it was dropped
    sitting.seat.ask_in_turn(int(now))
    place.pace = min(place.pace * 2, LONGEST_SYNC)


# --- what turns do -----------------------------------------------------------------------------------


def effect(tx: Tx, one: MeetingEffect, now: float) -> tuple[Envelope, ...]:
    """What it has put into inboxes. What the meeting refuses meanwhile is left."""
    room = Room(tx, one.effect_id, now, frozenset({one.participant.removeprefix("agent:")}))
    try:
        if type(one) is WriteEntry:
            _write(room, one)
        else:
            assert type(one) is EndTurn
            _end_turn(room, one)
    except (Forbidden, NotFound) as error:
        log.info("what a turn wrote is refused: %s", error, extra={"agent": one.participant})
    room.close()
    return tuple(room.posted)


def _write(room: Room, one: WriteEntry) -> None:
    if isinstance(one.body, Called):
        _call(room, one)
        return
    sitting = room.find(one.participant, one.meeting_id)
    if sitting is None:
        raise _unknown(one.meeting_id)
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
        _go(room, sitting, one.failed)


def _go(room: Room, sitting: Sitting, reason: str) -> None:
    """It takes part no more, and all others are told why."""
    status, reason = sitting.seat.status, reason[:2_000]
    if sitting.seat.view.is_over:
        return
    if status is Status.INVITED:
        room.write(sitting, Declined(reason))
    elif status is Status.IN:
        try:
            room.write(sitting, Left(reason))
        except Forbidden:  # it is the last one
            room.write(sitting, Ended())


def abandon(tx: Tx, op_id: str, participant: str, reason: str, now: float) -> tuple[Envelope, ...]:
    """Somebody is deleted: others are told, and nothing of it is left."""
    room = Room(tx, op_id, now)
    for e, post in _gathered(_unheard(tx, participant.removeprefix("agent:"))):  # others may wait for its answer
        room.hear(participant, e.sender, post, e.hops, e.root)
    rows = tx.read(
        f"SELECT meeting_id FROM meetings WHERE participant = :who AND {_OPEN}", {"who": participant}
    )  # fmt: skip
    for meeting_id in dict.fromkeys([*(row[0] for row in rows), *room.meetings_of(participant)]):
        sitting = room.find(participant, meeting_id)
        if sitting is not None:
            _go(room, sitting, reason)
    room.close()
    for table, column in (("meetings", "participant"), ("meeting_log", "participant"), ("timers", "address")):
        tx.write(f"DELETE FROM {table} WHERE {column} = :who", {"who": participant})
    key = participant.removeprefix("agent:")
    return tuple(e for e in room.posted if e.address != key)


def _unheard(tx: Tx, key: str) -> list[Envelope]:
    rows = tx.read(
        f"SELECT {ENVELOPE} FROM inbox WHERE address = :key AND address <> '' AND kind = 'meeting' ORDER BY created",
        {"key": key},
    )
    return [e for e in (envelope_of(row, claimed=False) for row in rows) if is_post(e)]


# --- what people do ----------------------------------------------------------------------------------


def call(tx: Tx, one: WriteEntry, now: float, awake: frozenset[str]) -> Acted:
    room = Room(tx, one.effect_id, now, awake)
    if not is_person(one.participant) and room.config(one.participant) is None:
        raise unknown(one.participant.rpartition("/")[2])
    if one.key is not None and (there := _called_with(tx, one)) is not None:
        sitting = room.find(one.participant, there)
        if sitting is None:
            raise Conflict(f"the key {one.key!r:.80} was used for a meeting that is long over: use a new key")
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
        raise _unknown(meeting_id)
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
        f" AND {_OPEN} ORDER BY participant LIMIT 1",
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
        raise _unknown(meeting_id)
    made = room.make(participant, meeting_id, host.place.creator)
    made.seat.version = host.seat.version
    made.seat.fresh = {entry.id: entry for entry in host.seat.log}
    return made


def _called_with(tx: Tx, one: WriteEntry) -> str | None:
    row = tx.one(
        "SELECT meeting_id, topic FROM meetings WHERE participant = :who AND key = :key",
        {"who": one.participant, "key": one.key},
    )
    if row is not None and isinstance(one.body, Called) and row[1] != one.body.topic:
        raise Conflict(f"the key {one.key!r:.80} was used for another meeting: use a new key for a new one")
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
    if there is None or type(there.body) is not type(body) or getattr(there.body, "text", "") != getattr(
        body, "text", ""
    ):  # fmt: skip
        raise Conflict(f"the key {key!r:.80} was used for something else: use a new key")
    return True


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


# --- what people see ---------------------------------------------------------------------------------


def seated(tx: Tx, participant: str, meeting_id: str) -> Seated | None:
    """Where a participant sits, whoever it belongs to: for its own turn. None: nowhere."""
    row = tx.one(
        f"SELECT {', '.join(COLUMNS)} FROM meetings WHERE participant = :who AND meeting_id = :meeting"
        " AND minutes IS NULL",
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
        raise _unknown(meeting_id)
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
        f"SELECT count(*) FROM meetings WHERE participant = :who AND creator = :who AND {_OPEN}", {"who": participant}
    )  # fmt: skip
    return int(row[0]) if row else 0


def of_agents(tx: Tx, keys: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The meetings that agents are in, the newest first."""
    rows = bulk.among(
        tx, f"SELECT participant, meeting_id FROM meetings WHERE status = 'in' AND {_OPEN} AND participant IN",
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


def _unknown(meeting_id: str) -> NotFound:
    return NotFound(f"there is no meeting {meeting_id!r:.80}: it was deleted, or it never existed")
