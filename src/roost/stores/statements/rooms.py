"""A room: all seats of meetings that one operation of the store touches, loaded as needed and kept at its end.

What is sent to agents is put into their inboxes. People have none: what is sent to them is heard at once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from roost.core.addresses import parse
from roost.core.agents import AgentConfig, Invitations
from roost.core.envelopes import Envelope, Kind
from roost.core.meetings import posts
from roost.core.meetings.attention import attention, is_person, is_pressing
from roost.core.meetings.bodies import Body
from roost.core.meetings.decisions import due_at
from roost.core.meetings.effects import MeetingChange, log_lane, turn_id, turn_lane
from roost.core.meetings.entries import Entry, to_json
from roost.core.meetings.posts import Post
from roost.core.meetings.seats import Seat
from roost.core.meetings.stamps import milliseconds
from roost.core.priority import Priority, rank
from roost.ports import Row, Tx
from roost.stores.statements import bulk
from roost.stores.statements.envelopes import put_all
from roost.stores.statements.places import COLUMNS, FIELDS, SYNC, VERSIONS, Place, Sitting, version_of
from roost.stores.statements.sleep import arm_all

log = logging.getLogger("roost.meetings")

LONGEST_SYNC = 120.0
TIMER = "meeting:"


class Room:
    """Made for one operation. `op_id`: what the ids of all that it posts are made of."""

    def __init__(self, tx: Tx, op_id: str, now: float, awake: frozenset[str] = frozenset()) -> None:
        self._tx = tx
        self._op_id = op_id
        self._now = now
        self._awake = awake
        self._sittings: dict[tuple[str, str], Sitting | None] = {}
        self._touched: dict[tuple[str, str], Sitting] = {}
        self._configs: dict[str, AgentConfig | None] = {}
        self._sent: list[tuple[str, str, Post, int, str]] = []
        self.priority = Priority.NORMAL
        self.posted: list[Envelope] = []
        self.changes: list[MeetingChange] = []

    @property
    def ms(self) -> int:
        return milliseconds(self._now)

    # --- seats -----------------------------------------------------------------------------------

    def find(self, participant: str, meeting_id: str) -> Sitting | None:
        name = (participant, meeting_id)
        if name not in self._sittings:
            row = self._tx.one(
                f"SELECT {FIELDS} FROM meetings WHERE participant = :who AND meeting_id = :meeting"
                f" AND minutes IS NULL{self._tx.for_update}",
                {"who": participant, "meeting": meeting_id},
            )
            self._sittings[name] = self._sitting(row) if row is not None else None
        return self._sittings[name]

    def load(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Those who will be looked for, by participant and meeting, all at once."""
        names: dict[str, dict[str, None]] = {}
        for participant, meeting_id in wanted:
            names.setdefault(meeting_id, {})[participant] = None
        for meeting_id, people in names.items():
            rows = bulk.among(
                self._tx, f"SELECT {FIELDS} FROM meetings WHERE minutes IS NULL AND meeting_id = ?"
                " AND participant IN",
                sorted(people), f" ORDER BY participant{self._tx.for_update}", first=[meeting_id],
            )  # fmt: skip
            self._sittings |= dict.fromkeys((one, meeting_id) for one in people)
            self._sittings |= {(row[0], meeting_id): self._sitting(row) for row in rows}

    def know(self, key: str, config: str) -> None:
        """What an agent's config is, from whoever has looked."""
        self._configs[key] = AgentConfig.from_json(config)

    def make(self, participant: str, meeting_id: str, creator: str) -> Sitting:
        owner = parse(participant, "").user_id
        place = Place(participant, meeting_id, owner, creator, called=self._now)
        seat = Seat(participant, VERSIONS.empty(meeting_id, creator))
        made = Sitting(place, replace(place), seat, is_new=True)
        self._sittings[participant, meeting_id] = made
        return made

    def touch(self, sitting: Sitting) -> None:
        self._touched[sitting.place.participant, sitting.place.meeting_id] = sitting

    def touched_by(self, participant: str) -> list[Sitting]:
        return [sitting for (who, _), sitting in self._touched.items() if who == participant]

    def _sitting(self, row: Row) -> Sitting:
        place = Place(*row)
        return Sitting(place, Place(*row), Seat(place.participant, version_of(self._tx, place)), is_new=False)

    def config(self, participant: str) -> AgentConfig | None:
        """Of an agent; None: there is no such one."""
        key = participant.removeprefix("agent:")
        if key not in self._configs:
            row = self._tx.one("SELECT config FROM agents WHERE address = :key", {"key": key})
            self._configs[key] = AgentConfig.from_json(row[0]) if row else None
        return self._configs[key]

    # --- what happens ----------------------------------------------------------------------------

    def hear(self, participant: str, sender: str, post: Post, hops: int = 0, root: str = "") -> None:
        """Somebody's post has come. Of a meeting that is not known only an invitation is listened to."""
        sitting = self.find(participant, post.meeting)
        if sitting is None:
            sitting = self.make(participant, post.meeting, post.creator)
            sitting.place.hops, sitting.place.root = hops, root
            if not post.entries and post.digest is not None:
                self._sittings[participant, post.meeting] = None
                sitting.seat.ask(sender)  # it may be about an invitation that was lost
                self.route(sitting)
                return
            sitting.seat.hear(sender, post)
            if not sitting.is_invited:
                self._sittings[participant, post.meeting] = None
                return
        elif sitting.place.creator != post.creator:
            return
        else:
            sitting.seat.hear(sender, post)
        self.touch(sitting)

    def write(self, sitting: Sitting, body: Body, key: str | None = None) -> Entry:
        """Raises Forbidden for what the rules of meetings refuse."""
        entry = sitting.seat.write(body, self.ms)
        if key is not None:
            sitting.key = (entry, key)
        self.touch(sitting)
        return entry

    # --- the end of it ---------------------------------------------------------------------------

    def close(self) -> None:
        """Let everyone do what is due, hand over what is sent, and keep all of it."""
        waiting = list(self._touched.values())
        while waiting:
            sitting = waiting.pop(0)
            sitting.seat.act(self.ms, self._accepts(sitting.seat.me))
            waiting += [one for one in self.route(sitting) if one not in waiting]
        kept = list(self._touched.values())
        for sitting in kept:
            self._look(sitting)
        self._keep(kept)
        self._post()

    def _accepts(self, me: str) -> bool | None:
        """What it does about invitations of itself."""
        config = None if is_person(me) else self.config(me)
        if config is None or config.invitations is Invitations.ASK:
            return None
        return config.invitations is Invitations.ACCEPT

    def route(self, sitting: Sitting) -> list[Sitting]:
        """Send what it has to send; those people who heard of it."""
        heard: list[Sitting] = []
        outgoing, sitting.seat.outgoing = sitting.seat.outgoing, []
        me, place = sitting.seat.me, sitting.place
        for to, post in outgoing:
            if not is_person(to):
                self._sent.append((to, me, post, place.hops, place.root))
                continue
            self.hear(to, me, post, place.hops, place.root)
            if (one := self._touched.get((to, post.meeting))) is not None:
                heard.append(one)
        return heard

    def _look(self, sitting: Sitting) -> None:
        """Where it stands now; whether its brain is to be asked, and when it is looked at again."""
        place, view = sitting.place, sitting.seat.view
        mine = view.participants.get(place.participant)
        place.phase, place.status = str(view.phase), str(mine.status) if mine else ""
        place.topic = view.call.topic if view.call else place.topic
        place.called = view.called_at / 1000 if view.called_at is not None else place.called
        place.over = view.over_at / 1000 if view.over_at is not None else None
        place.contents = sitting.seat.version.contents
        place.entries = sitting.seat.log.size
        at_once = self._ask(sitting)
        self._arm(sitting)
        before = sitting.before
        if sitting.is_new or (before.contents, before.phase, before.status) != (
            place.contents, place.phase, place.status
        ):  # fmt: skip
            self.changes.append(
                MeetingChange(
                    place.participant, place.meeting_id, "" if sitting.is_new else before.phase, place.phase,
                    at_once, is_asked=bool(place.turn), reason=view.reason,
                )
            )  # fmt: skip

    def _ask(self, sitting: Sitting) -> bool:
        place = sitting.place
        if is_person(place.participant) or (config := self.config(place.participant)) is None:
            return False
        heard, asked = place.told
        if place.turn:  # when that is over, it is looked at again
            return is_pressing(sitting.seat.view, place.participant, asked, sitting.seat.fresh.values())
        found = attention(
            sitting.seat.view, place.participant, heard, asked, is_asked=config.invitations is Invitations.ASK
        )
        if found is None:
            return False
        place.turns += 1
        place.turn = turn_id(place.meeting_id, place.participant, place.turns)
        self.posted.append(self._turn(place, config))
        return found.at_once

    def _turn(self, place: Place, config: AgentConfig) -> Envelope:
        address = place.participant.removeprefix("agent:")
        handed = config.max_attempts > 1 and address in self._awake
        return Envelope(
            place.turn, address, Kind.MEETING, turn_lane(place.meeting_id), Priority.NORMAL, place.creator,
            place.meeting_id, self._now, rank(self._now, Priority.NORMAL), most_attempts=config.max_attempts,
            retry_delay=config.retry_delay, hops=place.hops, attempts=int(handed), claimed=handed, root=place.root,
        )  # fmt: skip

    def _arm(self, sitting: Sitting) -> None:
        place, view = sitting.place, sitting.seat.view
        if not view.is_in(place.participant) or (view.is_over and place.pace >= LONGEST_SYNC):
            return  # of what is over, the others are asked a few times more, so that all keep the same
        if sitting.seat.fresh:
            place.pace = SYNC
        due = self._now + place.pace
        if (own := due_at(view, place.participant)) is not None:
            due = min(due, max(own / 1000, self._now + 1.0))  # what could be done now is done
        if place.timer is None or due < place.timer - 0.001:
            place.timer = due

    def _keep(self, kept: Sequence[Sitting]) -> None:
        rows = []
        for sitting in kept:
            place = sitting.place
            for entry in sitting.seat.fresh.values():
                key = sitting.key[1] if sitting.key is not None and sitting.key[0].id == entry.id else None
                rows.append(
                    (place.participant, place.meeting_id, entry.author, entry.number, to_json(entry), key)
                )  # fmt: skip
        bulk.insert(self._tx, "meeting_log", _LOG, rows, _NEWER)
        changed = [one.place for one in kept if one.is_new or one.place != one.before]
        values = [tuple(getattr(place, name) for name in COLUMNS) for place in changed]
        bulk.insert(self._tx, "meetings", COLUMNS, values, _REPLACED)
        timers = [
            (place.participant, TIMER + place.meeting_id, place.timer)
            for place, before in ((one.place, one.before) for one in kept)
            if place.timer is not None and place.timer != before.timer
        ]
        arm_all(self._tx, timers)

    def _post(self) -> None:
        """All that is sent to agents; to those who are gone nothing is."""
        keys = sorted({to.removeprefix("agent:") for to, *_ in self._sent})
        there = {row[0] for row in bulk.among(self._tx, "SELECT address FROM agents WHERE address IN", keys)}
        texts: dict[int, str] = {}
        made: list[Envelope] = []
        for number, (to, sender, post, hops, root) in enumerate(self._sent):
            address = to.removeprefix("agent:")
            if address not in there:
                continue
            if id(post) not in texts:
                texts[id(post)] = posts.to_json(post)
            made.append(
                Envelope(
                    f"{self._op_id}:{number}", address, Kind.MEETING, log_lane(post.meeting), self.priority, sender,
                    texts[id(post)], self._now, rank(self._now, self.priority), attempts=0, hops=hops, claimed=False,
                    root=root,
                )
            )  # fmt: skip
        put_all(self._tx, [*made, *self.posted], recorded=False)
        self.posted += made


_LOG = ("participant", "meeting_id", "author", "number", "entry", "key")
_NEWER = (
    " ON CONFLICT (participant, meeting_id, author, number) DO UPDATE SET entry = excluded.entry, key = excluded.key"
)
_REPLACED = " ON CONFLICT (participant, meeting_id) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in COLUMNS if name not in ("participant", "meeting_id", "user_id", "key")
)
