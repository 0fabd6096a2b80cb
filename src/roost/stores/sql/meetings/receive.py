"""Receive meeting posts: move them from inboxes to the logs of their recipients."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.lanes import is_post, meeting_of
from roost.core.meetings.log import posts
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.posts import Post
from roost.core.meetings.participants.attention import is_person
from roost.core.meetings.view.view import Phase
from roost.errors import Invalid
from roost.ports import Tx
from roost.stores import bulk, locking
from roost.stores.sql.meetings.outcomes import Received
from roost.stores.sql.meetings.rows import LoadedSeat
from roost.stores.sql.meetings.session import LONGEST_SYNC, TIMER, MeetingSession
from roost.stores.sql.tables.envelopes import ENVELOPE, envelope_of

log = logging.getLogger("roost.meetings")


def _agents(envelopes: Sequence[Envelope], ticks: Sequence[tuple[str, str]]) -> set[str]:
    return {e.address for e in envelopes} | {who.removeprefix("agent:") for who, _ in ticks if not is_person(who)}


@locking.locks(lambda tx, op_id, envelopes, ticks, *_: map(locking.agent, _agents(envelopes, ticks)))
def receive_posts(
    tx: Tx,
    op_id: str,
    envelopes: Sequence[Envelope],
    ticks: Sequence[tuple[str, str]],
    now: float,
    awake: frozenset[str],
) -> Received:
    """Move posts from inboxes to logs, and process meetings whose timers are due."""
    session = MeetingSession(tx, op_id, now, awake)
    ready = _ready(tx, session, sorted(_agents(envelopes, ticks)))
    ids = [e.envelope_id for e in envelopes if e.address in ready]
    removed = {
        row[0] for row in bulk.write(tx, "DELETE FROM inbox WHERE envelope_id IN", ids, " RETURNING envelope_id")
    }
    posts_to_read = merged_posts(e for e in sorted(envelopes, key=lambda one: one.created) if e.envelope_id in removed)
    session.load((f"agent:{e.address}", post.meeting) for e, post in posts_to_read)
    for e, post in posts_to_read:
        session.receive(f"agent:{e.address}", e.sender, post, e.hops, e.root)
    for participant, meeting_id in ticks:
        _tick(tx, session, participant, meeting_id, ready, now)
    session.close()
    unready = tuple(sorted({e.address for e in envelopes} - ready))
    return Received(tuple(session.posted), tuple(session.changes), unready)


def _ready(tx: Tx, session: MeetingSession, keys: Sequence[str]) -> set[str]:
    """Return agents that may work now: not asleep, stopped or paused."""
    rows = bulk.read(
        tx,
        "SELECT address, config, state, paused FROM agents WHERE address IN",
        keys,
        f" ORDER BY address{tx.for_update}",
    )
    for address, config, *_ in rows:
        session.cache_config(address, config)
    return {address for address, _, state, paused in rows if state == "idle" and not paused}


def merged_posts(envelopes: Iterable[Envelope]) -> list[tuple[Envelope, Post]]:
    """Parse posts; merge those of one sender to one recipient in one meeting."""
    groups: dict[tuple[str, ...], tuple[Envelope, Post, list[Entry]]] = {}
    for e in envelopes:
        try:
            post = posts.from_json(e.body)
        except Invalid as error:
            log.warning("skipping an unreadable meeting post: %s", error, extra={"agent": e.address})
            continue
        is_plain = not post.is_answer and post.digest is None
        group = (e.address, e.sender, post.meeting, post.creator) if is_plain else (e.envelope_id,)
        groups.setdefault(group, (e, post, []))[2].extend(post.entries)
    return [
        (e, post if len(post.entries) == len(entries) else replace(post, entries=tuple(entries)))
        for e, post, entries in groups.values()
    ]


def _tick(tx: Tx, session: MeetingSession, participant: str, meeting_id: str, ready: set[str], now: float) -> None:
    tx.write("DELETE FROM timers WHERE address = :who AND key = :key", {"who": participant, "key": TIMER + meeting_id})
    is_ready = is_person(participant) or participant.removeprefix("agent:") in ready
    if not is_ready and not _must_start_meeting(session.find(participant, meeting_id), session.ms):
        ids = {"who": participant, "meeting": meeting_id}  # processed when the agent is back
        tx.write("UPDATE meetings SET timer = NULL WHERE participant = :who AND meeting_id = :meeting", ids)
        return
    if not is_ready:
        _receive_waiting(tx, session, participant, meeting_id)
    loaded = session.find(participant, meeting_id)
    if loaded is None:
        return
    row = loaded.row
    row.timer, loaded.before.timer = None, -1.0
    session.touch(loaded)
    if row.turn and tx.one("SELECT 1 FROM inbox WHERE envelope_id = :id", {"id": row.turn}) is None:
        row.turn = ""  # it was dropped
    loaded.seat.ask_in_turn(int(now))
    row.pace = min(row.pace * 2, LONGEST_SYNC)


def _must_start_meeting(loaded: LoadedSeat | None, ms: int) -> bool:
    """Return whether a call's deadline has passed and this participant has to start the meeting.

    That needs no brain: it is not delayed because an agent sleeps or is paused while all others wait.
    """
    if loaded is None or loaded.unknown_game is not None:
        return False
    view = loaded.seat.view
    is_late = view.call is not None and view.phase is Phase.CALLING and ms >= view.call.deadline
    return is_late and view.chair == loaded.seat.me


def _receive_waiting(tx: Tx, session: MeetingSession, participant: str, meeting_id: str) -> None:
    """Process the posts of a participant that may not work: others may have answered in time."""
    posts = [e for e in waiting_posts(tx, participant.removeprefix("agent:")) if meeting_of(e.lane) == meeting_id]
    bulk.write(tx, "DELETE FROM inbox WHERE envelope_id IN", [e.envelope_id for e in posts])
    for e, post in merged_posts(posts):
        session.receive(participant, e.sender, post, e.hops, e.root)


def waiting_posts(tx: Tx, key: str) -> list[Envelope]:
    rows = tx.read(
        f"SELECT {ENVELOPE} FROM inbox WHERE address = :key AND address <> '' AND kind = 'meeting' ORDER BY created",
        {"key": key},
    )
    return [e for e in (envelope_of(row) for row in rows) if is_post(e)]
