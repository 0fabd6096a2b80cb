"""Hearing: what participants of meetings send each other is taken out of inboxes and into logs."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from roost.core.envelopes import Envelope
from roost.core.meetings import posts
from roost.core.meetings.attention import is_person
from roost.core.meetings.effects import is_post
from roost.core.meetings.entries import Entry
from roost.core.meetings.posts import Post
from roost.errors import Invalid
from roost.ports import Heard, Tx
from roost.stores.statements import bulk
from roost.stores.statements.envelopes import ENVELOPE, envelope_of
from roost.stores.statements.rooms import LONGEST_SYNC, TIMER, Room

log = logging.getLogger("roost.meetings")


def hear(
    tx: Tx, op_id: str, envelopes: Sequence[Envelope], ticks: Sequence[tuple[str, str]], now: float,
    awake: frozenset[str],
) -> Heard:  # fmt: skip
    room = Room(tx, op_id, now, awake)
    agents = {e.address for e in envelopes} | {who.removeprefix("agent:") for who, _ in ticks if not is_person(who)}
    ready = _ready(tx, room, sorted(agents))
    ids = [e.envelope_id for e in envelopes if e.address in ready]
    gone = {row[0] for row in bulk.change(tx, "DELETE FROM inbox WHERE envelope_id IN", ids, " RETURNING envelope_id")}
    heard = gathered(e for e in sorted(envelopes, key=lambda one: one.created) if e.envelope_id in gone)
    room.load((f"agent:{e.address}", post.meeting) for e, post in heard)
    for e, post in heard:
        room.hear(f"agent:{e.address}", e.sender, post, e.hops, e.root)
    for participant, meeting_id in ticks:
        _tick(tx, room, participant, meeting_id, ready, now)
    room.close()
    unready = tuple(sorted({e.address for e in envelopes} - ready))
    return Heard(tuple(room.posted), tuple(room.changes), unready)


def _ready(tx: Tx, room: Room, keys: Sequence[str]) -> set[str]:
    """Agents that may work now: neither asleep nor stopped nor paused."""
    rows = bulk.among(
        tx, "SELECT address, config, state, paused FROM agents WHERE address IN", keys,
        f" ORDER BY address{tx.for_update}",
    )  # fmt: skip
    for address, config, *_ in rows:
        room.know(address, config)
    return {address for address, _, state, paused in rows if state == "idle" and not paused}


def gathered(envelopes: Iterable[Envelope]) -> list[tuple[Envelope, Post]]:
    """What they say; what one tells another about itself is heard at once, however many envelopes it came in."""
    found: dict[tuple[str, ...], tuple[Envelope, Post, list[Entry]]] = {}
    for e in envelopes:
        try:
            post = posts.from_json(e.body)
        except Invalid as error:
            log.warning("a post of a meeting is left: %s", error, extra={"agent": e.address})
            continue
        is_plain = not post.is_answer and post.digest is None
        name = (e.address, e.sender, post.meeting, post.creator) if is_plain else (e.envelope_id,)
        found.setdefault(name, (e, post, []))[2].extend(post.entries)
    return [
        (e, post if len(post.entries) == len(told) else replace(post, entries=tuple(told)))
        for e, post, told in found.values()
    ]


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


def unheard(tx: Tx, key: str) -> list[Envelope]:
    rows = tx.read(
        f"SELECT {ENVELOPE} FROM inbox WHERE address = :key AND address <> '' AND kind = 'meeting' ORDER BY created",
        {"key": key},
    )
    return [e for e in (envelope_of(row, claimed=False) for row in rows) if is_post(e)]
