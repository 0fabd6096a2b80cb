"""Entries that people and turns write to meetings.

Each action writes to the log of one participant and is sent to the others. `op_id`: prefix of the ids of everything
posted. `awake`: agents that can be handed work at once. An action that the rules refuse raises Forbidden and changes
nothing. A meeting without a participant of this user is `NotFound`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from roost.core.envelopes.envelope import Envelope
from roost.core.meetings.effects import EndTurn, MeetingEffect, WriteEntry
from roost.core.meetings.log import shapes
from roost.core.meetings.log.bodies import Accepted, Body, Called, Invited, Joined, Moved, Passed, Raised
from roost.core.meetings.participants.attention import is_person
from roost.core.meetings.participants.participant_log import ParticipantLog
from roost.core.meetings.view.view import ParticipantStatus, View
from roost.core.values.addresses import unknown
from roost.errors import Conflict, Forbidden, NotFound
from roost.ports import Tx
from roost.stores.sql.meetings.membership import remove
from roost.stores.sql.meetings.outcomes import ActionResult
from roost.stores.sql.meetings.registry import unknown as unknown_meeting
from roost.stores.sql.meetings.rows import OPEN, LoadedSeat
from roost.stores.sql.meetings.session import MeetingSession

log = logging.getLogger("roost.meetings")

# --- actions of turns -----------------------------------------------------------------------------------


def effects(tx: Tx, many: Sequence[MeetingEffect], now: float) -> tuple[Envelope, ...]:
    """Apply actions of turns in meetings; return the envelopes put into inboxes. Refused actions are recorded.

    The actions of one turn in one meeting are sent to the others together.
    """
    posted: list[Envelope] = []
    for _, group in groupby(many, key=lambda one: (one.participant, one.meeting_id)):
        posted += _write_all(tx, list(group), now)
    return tuple(posted)


def _write_all(tx: Tx, many: Sequence[MeetingEffect], now: float) -> list[Envelope]:
    session = MeetingSession(tx, many[0].effect_id, now, frozenset({many[0].participant.removeprefix("agent:")}))
    for one in many:
        try:
            if type(one) is WriteEntry:
                _write(session, one)
            else:
                assert type(one) is EndTurn
                _end_turn(session, one)
        except (Forbidden, NotFound) as error:
            log.info("the meeting refused a turn's entry: %s", error, extra={"agent": one.participant})
    session.close()
    return session.posted


def _write(session: MeetingSession, one: WriteEntry) -> None:
    if isinstance(one.body, Called):
        _call(session, one)
        return
    loaded = session.find(one.participant, one.meeting_id)
    if loaded is None:
        raise unknown_meeting(one.meeting_id)
    try:
        session.write(loaded, one.body)
    except Forbidden as refused:
        log.info("the meeting refused a turn's entry: %s", refused, extra={"agent": one.participant, "run": one.run})
        if not _may_be_dropped(one, loaded.seat.view):
            session.withhold(loaded, one.body, str(refused), one.run)


def _may_be_dropped(one: WriteEntry, view: View) -> bool:
    """Return whether a refused entry needs no record: it was written before, or it does not come from the brain."""
    is_up = isinstance(one.body, Raised) and one.participant in view.floor.hands
    return is_up or isinstance(one.body, Accepted | Passed)


def _call(session: MeetingSession, one: WriteEntry) -> LoadedSeat:
    loaded = session.find(one.participant, one.meeting_id) or session.make(
        one.participant, one.meeting_id, one.participant
    )
    row = loaded.row
    row.hops, row.root, row.key = one.hops, one.root or one.meeting_id, one.key
    session.priority = one.priority
    session.write(loaded, one.body)
    return loaded


def _end_turn(session: MeetingSession, one: EndTurn) -> None:
    loaded = session.find(one.participant, one.meeting_id)
    if loaded is None:
        return
    loaded.row.turn = ""
    if one.heard is not None:
        loaded.row.heard, loaded.row.asked = json.dumps(dict(one.heard)), json.dumps(list(one.asked))
    session.touch(loaded)
    if one.failed:
        remove(session, loaded, one.failed)


# --- actions of people ----------------------------------------------------------------------------------


def call(tx: Tx, one: WriteEntry, now: float, awake: frozenset[str]) -> ActionResult:
    """Call a meeting. With a key used before return that meeting; raise Conflict if it differs."""
    session = MeetingSession(tx, one.effect_id, now, awake)
    if not is_person(one.participant) and session.config(one.participant) is None:
        raise unknown(one.participant.rpartition("/")[2])
    if one.key is not None and (existing := _meeting_with_key(tx, one)) is not None:
        loaded = session.find(one.participant, existing)
        if loaded is None:
            raise Conflict(f"the key {one.key!r:.80} was used for a meeting that is long over: use a new key")
        if (earlier_call := loaded.seat.view.call) is None or not _is_same(earlier_call, one.body):
            raise Conflict(f"the key {one.key!r:.80} was used for another meeting: use a new key for a new one")
        return _result(loaded, session)
    loaded = _call(session, one)
    session.close()
    return _result(loaded, session)


def act(
    tx: Tx,
    op_id: str,
    user_id: str,
    participant: str,
    meeting_id: str,
    make: Callable[[View], Body],
    now: float,
    key: str | None,
    awake: frozenset[str],
) -> ActionResult:
    """Write the body that `make` returns for the participant's view."""
    session = MeetingSession(tx, op_id, now, awake)
    loaded = session.find(participant, meeting_id)
    if loaded is None or loaded.row.user_id != user_id:
        _check_access(tx, user_id, participant, meeting_id)
        raise unknown_meeting(meeting_id)
    body = make(loaded.seat.view)
    if key is not None and _is_written_with_key(tx, loaded, key, body):
        return _result(loaded, session)
    entry = session.write(loaded, body, key)
    session.close()
    return _result(loaded, session, entry.number)


def join(
    tx: Tx, op_id: str, user_id: str, participant: str, meeting_id: str, now: float, awake: frozenset[str]
) -> ActionResult:
    """Join a meeting: accept an invitation, come late or again, or join an open meeting or one of an own agent."""
    session = MeetingSession(tx, op_id, now, awake)
    if not is_person(participant) and session.config(participant) is None:
        raise unknown(participant.rpartition("/")[2])
    loaded = session.find(participant, meeting_id) or _join_uninvited(tx, session, user_id, participant, meeting_id)
    if loaded.row.participant == participant:
        session.write(loaded, Accepted() if loaded.seat.status is ParticipantStatus.INVITED else Joined())
    session.close()
    return _result(loaded, session)


def _join_uninvited(tx: Tx, session: MeetingSession, user_id: str, participant: str, meeting_id: str) -> LoadedSeat:
    """Join without an invitation: through an own agent in the meeting, or because it is open."""
    row = tx.one(
        "SELECT participant FROM meetings WHERE user_id = :user AND meeting_id = :meeting AND status = 'in'"
        f" AND {OPEN} ORDER BY participant LIMIT 1",
        {"user": user_id, "meeting": meeting_id},
    )
    host = session.find(row[0], meeting_id) if row else None
    if host is not None:
        session.write(host, Invited(participant))
        session.route(host)
        return session.find(participant, meeting_id) or host  # an agent is invited through its inbox
    row = tx.one("SELECT creator FROM meetings WHERE meeting_id = :meeting LIMIT 1", {"meeting": meeting_id})
    host = session.find(row[0], meeting_id) if row else None
    if host is None or host.seat.view.call is None or not host.seat.view.call.open:
        raise unknown_meeting(meeting_id)
    made = session.make(participant, meeting_id, host.row.creator)
    made.seat.version = host.seat.version
    made.seat.fresh = {entry.id: entry for entry in host.seat.log}
    return made


def _meeting_with_key(tx: Tx, one: WriteEntry) -> str | None:
    row = tx.one(
        "SELECT meeting_id FROM meetings WHERE participant = :who AND key = :key",
        {"who": one.participant, "key": one.key},
    )
    return str(row[0]) if row else None


def _is_written_with_key(tx: Tx, loaded: LoadedSeat, key: str, body: Body) -> bool:
    written = tx.one(
        "SELECT author, number FROM meeting_log WHERE participant = :who AND meeting_id = :meeting AND key = :key",
        {"who": loaded.row.participant, "meeting": loaded.row.meeting_id, "key": key},
    )
    if written is None:
        return False
    existing = next((e for e in loaded.seat.log if (e.author, e.number) == tuple(written)), None)
    if existing is None or not _is_same(existing.body, body):
        raise Conflict(f"the key {key!r:.80} was used for something else: use a new key")
    return True


def _is_same(stored: Body, body: Body) -> bool:
    """Return whether both are equal, except for values that depend on the time."""
    if isinstance(stored, Moved) and isinstance(body, Moved):
        body = replace(body, answers=stored.answers)
    elif isinstance(stored, Called) and isinstance(body, Called):
        body = replace(body, deadline=stored.deadline)
    try:
        stored_text, new_text = (json.dumps(shapes.plain(one), sort_keys=True) for one in (stored, body))
    except (TypeError, ValueError, RecursionError):  # a value that JSON cannot hold was never stored
        return False
    return type(stored) is type(body) and stored_text == new_text


def _check_access(tx: Tx, user_id: str, participant: str, meeting_id: str) -> None:
    """Raise Forbidden with the reason for a user who knows the meeting through agents or has only its minutes."""
    rows = tx.read(
        "SELECT participant, minutes IS NULL FROM meetings WHERE user_id = :user AND meeting_id = :meeting",
        {"user": user_id, "meeting": meeting_id},
    )
    if any(row[0] == participant for row in rows):
        raise Forbidden(f"the meeting {meeting_id!r:.80} is over, and only its minutes are left: call another one")
    if rows:
        raise Forbidden(f"{participant} does not take part in the meeting: join it first")


def _result(loaded: LoadedSeat, session: MeetingSession, number: int = 0) -> ActionResult:
    row = loaded.row
    seen_entries, asked = row.last_turn
    seated = ParticipantLog(row.participant, row.meeting_id, loaded.seat.version, seen_entries, asked)
    return ActionResult(seated, tuple(session.posted), tuple(session.changes), number)
