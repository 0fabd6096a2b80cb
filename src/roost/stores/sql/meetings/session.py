"""A session: the seats that one store operation touches, loaded on demand and stored at its end.

Posts to agents are put into their inboxes. People have none: posts to them are processed at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from roost.core.agents.agent import AgentConfig, Invitations
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.lanes import log_lane, turn_id, turn_lane
from roost.core.meetings.effects import MeetingChange
from roost.core.meetings.log import posts
from roost.core.meetings.log.bodies import Body
from roost.core.meetings.log.entries import Entry, to_json
from roost.core.meetings.log.posts import Post
from roost.core.meetings.log.stamps import milliseconds
from roost.core.meetings.participants.attention import attention, is_person, is_pressing
from roost.core.meetings.participants.decisions import due_at
from roost.core.meetings.participants.seats import Seat
from roost.core.values.addresses import parse
from roost.core.values.priority import Priority, rank
from roost.ports import Row, Tx
from roost.stores import bulk
from roost.stores.sql.meetings.rows import (
    COLUMNS,
    FIELDS,
    SYNC,
    VERSIONS,
    LoadedSeat,
    ParticipantRow,
    not_registered,
    version_of,
)
from roost.stores.sql.tables.envelopes import put_all
from roost.stores.sql.tables.timers import arm_all

log = logging.getLogger("roost.meetings")

LONGEST_SYNC = 120.0
TIMER = "meeting:"


class MeetingSession:
    """Session of one operation. `op_id`: prefix of the ids of everything it posts."""

    def __init__(self, tx: Tx, op_id: str, now: float, awake: frozenset[str] = frozenset()) -> None:
        self._tx = tx
        self._op_id = op_id
        self._now = now
        self._awake = awake
        self._loaded_seats: dict[tuple[str, str], LoadedSeat | None] = {}
        self._touched: dict[tuple[str, str], LoadedSeat] = {}
        self._configs: dict[str, AgentConfig | None] = {}
        self._sent: list[tuple[str, str, Post, int, str]] = []
        self.priority = Priority.NORMAL
        self.posted: list[Envelope] = []
        self.changes: list[MeetingChange] = []

    @property
    def ms(self) -> int:
        return milliseconds(self._now)

    # --- seats -----------------------------------------------------------------------------------

    def find(self, participant: str, meeting_id: str) -> LoadedSeat | None:
        name = (participant, meeting_id)
        if name not in self._loaded_seats:
            row = self._tx.one(
                f"SELECT {FIELDS} FROM meetings WHERE participant = :who AND meeting_id = :meeting"
                f" AND minutes IS NULL{self._tx.for_update}",
                {"who": participant, "meeting": meeting_id},
            )
            self._loaded_seats[name] = self._load(row) if row is not None else None
        return self._loaded_seats[name]

    def load(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Load seats that will be needed, by participant and meeting, in one query."""
        names: dict[str, dict[str, None]] = {}
        for participant, meeting_id in wanted:
            names.setdefault(meeting_id, {})[participant] = None
        for meeting_id, people in names.items():
            rows = bulk.read(
                self._tx,
                f"SELECT {FIELDS} FROM meetings WHERE minutes IS NULL AND meeting_id = ? AND participant IN",
                sorted(people),
                f" ORDER BY participant{self._tx.for_update}",
                first=[meeting_id],
            )
            self._loaded_seats |= dict.fromkeys((one, meeting_id) for one in people)
            self._loaded_seats |= {(row[0], meeting_id): self._load(row) for row in rows}

    def cache_config(self, key: str, config: str) -> None:
        """Set an agent's config that the caller has read already."""
        self._configs[key] = AgentConfig.from_json(config)

    def make(self, participant: str, meeting_id: str, creator: str) -> LoadedSeat:
        owner = parse(participant, "").user_id
        row = ParticipantRow(participant, meeting_id, owner, creator, called=self._now)
        seat = Seat(participant, VERSIONS.empty(meeting_id, creator))
        made = LoadedSeat(row, replace(row), seat, is_new=True)
        self._loaded_seats[participant, meeting_id] = made
        return made

    def touch(self, loaded: LoadedSeat) -> None:
        self._touched[loaded.row.participant, loaded.row.meeting_id] = loaded

    def touched_by(self, participant: str) -> list[LoadedSeat]:
        return [loaded for (who, _), loaded in self._touched.items() if who == participant]

    def _load(self, values: Row) -> LoadedSeat:
        row = ParticipantRow(*values)
        return LoadedSeat(row, ParticipantRow(*values), Seat(row.participant, version_of(self._tx, row)), is_new=False)

    def config(self, participant: str) -> AgentConfig | None:
        """Return an agent's config; None if it does not exist."""
        key = participant.removeprefix("agent:")
        if key not in self._configs:
            row = self._tx.one("SELECT config FROM agents WHERE address = :key", {"key": key})
            self._configs[key] = AgentConfig.from_json(row[0]) if row else None
        return self._configs[key]

    # --- posts and entries ----------------------------------------------------------------------------

    def receive(self, participant: str, sender: str, post: Post, hops: int = 0, root: str = "") -> None:
        """Process a received post. For an unknown meeting only invitations are accepted."""
        loaded = self.find(participant, post.meeting)
        if loaded is None:
            loaded = self.make(participant, post.meeting, post.creator)
            loaded.row.hops, loaded.row.root = hops, root
            if not post.entries and post.digest is not None:
                self._loaded_seats[participant, post.meeting] = None
                loaded.seat.ask(sender)  # an invitation may have been lost
                self.route(loaded)
                return
            loaded.seat.hear(sender, post)
            if not loaded.is_invited:
                self._loaded_seats[participant, post.meeting] = None
                return
        elif loaded.row.creator != post.creator:
            return
        else:
            loaded.seat.hear(sender, post)
        self.touch(loaded)

    def write(self, loaded: LoadedSeat, body: Body, key: str | None = None) -> Entry:
        """Write an entry. Raise Forbidden if the rules refuse it, Unavailable if its game is not registered."""
        if (game := loaded.unknown_game) is not None and not loaded.is_new:
            raise not_registered(game)
        entry = loaded.seat.write(body, self.ms)
        if key is not None:
            loaded.key = (entry, key)
        self.touch(loaded)
        return entry

    def withhold(self, loaded: LoadedSeat, body: Body, reason: str, run: str) -> None:
        """Record that an action was refused."""
        loaded.seat.withhold(body, reason, run, self.ms)
        self.touch(loaded)

    # --- storing ---------------------------------------------------------------------------

    def close(self) -> None:
        """Let participants do what is due, deliver what was sent, and store everything."""
        pending = list(self._touched.values())
        while pending:
            loaded = pending.pop(0)
            if loaded.unknown_game is None:
                loaded.seat.act(self.ms, self._accepts(loaded.seat.me))
            pending += [one for one in self.route(loaded) if one not in pending]
        touched = list(self._touched.values())
        for loaded in touched:
            self._update(loaded)
        self._store(touched)
        self._post()

    def _accepts(self, me: str) -> bool | None:
        """Return how an agent answers invitations by itself; None if its brain is asked."""
        config = None if is_person(me) else self.config(me)
        if config is None or config.invitations is Invitations.ASK:
            return None
        return config.invitations is Invitations.ACCEPT

    def route(self, loaded: LoadedSeat) -> list[LoadedSeat]:
        """Deliver what a seat sends; return the people's seats that received it."""
        receivers: list[LoadedSeat] = []
        outgoing, loaded.seat.outgoing = loaded.seat.outgoing, []
        me, row = loaded.seat.me, loaded.row
        for to, post in outgoing:
            if not is_person(to):
                self._sent.append((to, me, post, row.hops, row.root))
                continue
            self.receive(to, me, post, row.hops, row.root)
            if (one := self._touched.get((to, post.meeting))) is not None:
                receivers.append(one)
        return receivers

    def _update(self, loaded: LoadedSeat) -> None:
        """Update the row; decide whether the brain is asked, and when the meeting is checked again."""
        row, view = loaded.row, loaded.seat.view
        if loaded.unknown_game is not None and not loaded.is_new:  # unchanged until the game is registered
            row.contents, row.entries = loaded.seat.version.contents, loaded.seat.log.size
            row.timer = row.timer or self._now + LONGEST_SYNC
            return
        participant = view.participants.get(row.participant)
        row.phase, row.status = str(view.phase), str(participant.status) if participant else ""
        row.topic = view.call.topic if view.call else row.topic
        row.called = view.called_at / 1000 if view.called_at is not None else row.called
        row.over = view.over_at / 1000 if view.over_at is not None else None
        row.contents = loaded.seat.version.contents
        row.entries = loaded.seat.log.size
        at_once = self._start_turn(loaded)
        self._arm(loaded)
        before = loaded.before
        if loaded.is_new or (before.contents, before.phase, before.status) != (
            row.contents,
            row.phase,
            row.status,
        ):
            self.changes.append(
                MeetingChange(
                    row.participant,
                    row.meeting_id,
                    "" if loaded.is_new else before.phase,
                    row.phase,
                    at_once,
                    is_asked=bool(row.turn),
                    reason=view.reason,
                )
            )

    def _start_turn(self, loaded: LoadedSeat) -> bool:
        row = loaded.row
        if is_person(row.participant) or (config := self.config(row.participant)) is None:
            return False
        heard, asked = row.last_turn
        if row.turn:  # checked again after that turn
            return is_pressing(loaded.seat.view, row.participant, asked, loaded.seat.fresh.values())
        found = attention(
            loaded.seat.view, row.participant, heard, asked, is_asked=config.invitations is Invitations.ASK
        )
        if found is None:
            return False
        row.turns += 1
        row.turn = turn_id(row.meeting_id, row.participant, row.turns)
        self.posted.append(self._turn_envelope(row, config))
        return found.at_once

    def _turn_envelope(self, row: ParticipantRow, config: AgentConfig) -> Envelope:
        address = row.participant.removeprefix("agent:")
        return Envelope(
            row.turn,
            address,
            Kind.MEETING,
            turn_lane(row.meeting_id),
            Priority.NORMAL,
            row.creator,
            row.meeting_id,
            self._now,
            rank(self._now, Priority.NORMAL),
            most_attempts=config.max_attempts,
            retry_delay=config.retry_delay,
            hops=row.hops,
            root=row.root,
        )

    def _arm(self, loaded: LoadedSeat) -> None:
        row, view = loaded.row, loaded.seat.view
        if not view.is_in(row.participant) or (view.is_over and row.pace >= LONGEST_SYNC):
            return  # after the end, ask a few more times so that all logs agree
        if loaded.seat.fresh:
            row.pace = SYNC
        due = self._now + row.pace
        if (own := due_at(view, row.participant)) is not None:
            own_due = (own + 1) / 1000  # entries have whole milliseconds
            due = min(due, own_due if own_due > self._now else self._now + 1.0)  # what was due is done
        if row.timer is None or due < row.timer - 0.001:
            row.timer = due

    def _store(self, seats: Sequence[LoadedSeat]) -> None:
        rows = []
        for loaded in seats:
            row = loaded.row
            for entry in loaded.seat.fresh.values():
                key = loaded.key[1] if loaded.key is not None and loaded.key[0].id == entry.id else None
                rows.append((row.participant, row.meeting_id, entry.author, entry.number, to_json(entry), key))
        bulk.insert(self._tx, "meeting_log", _LOG, rows, _REPLACE_ENTRY)
        changed = [one.row for one in seats if one.is_new or one.row != one.before]
        values = [tuple(getattr(row, name) for name in COLUMNS) for row in changed]
        bulk.insert(self._tx, "meetings", COLUMNS, values, _REPLACE_ROW)
        timers = [
            (row.participant, TIMER + row.meeting_id, row.timer)
            for row, before in ((one.row, one.before) for one in seats)
            if row.timer is not None and row.timer != before.timer
        ]
        arm_all(self._tx, timers)

    def _post(self) -> None:
        """Put posts into agents' inboxes; skip agents that no longer exist."""
        keys = sorted({to.removeprefix("agent:") for to, *_ in self._sent})
        existing = {row[0] for row in bulk.read(self._tx, "SELECT address FROM agents WHERE address IN", keys)}
        texts: dict[int, str] = {}
        envelopes: list[Envelope] = []
        for number, (to, sender, post, hops, root) in enumerate(self._sent):
            address = to.removeprefix("agent:")
            if address not in existing:
                continue
            if id(post) not in texts:
                texts[id(post)] = posts.to_json(post)
            envelopes.append(
                Envelope(
                    f"{self._op_id}:{number}",
                    address,
                    Kind.MEETING,
                    log_lane(post.meeting),
                    self.priority,
                    sender,
                    texts[id(post)],
                    self._now,
                    rank(self._now, self.priority),
                    hops=hops,
                    root=root,
                )
            )
        put_all(self._tx, [*envelopes, *self.posted], recorded=False)
        self.posted += envelopes


_LOG = ("participant", "meeting_id", "author", "number", "entry", "key")
_REPLACE_ENTRY = (
    " ON CONFLICT (participant, meeting_id, author, number) DO UPDATE SET entry = excluded.entry, key = excluded.key"
)
_REPLACE_ROW = " ON CONFLICT (participant, meeting_id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS if name not in ("participant", "meeting_id", "user_id", "key")
)
