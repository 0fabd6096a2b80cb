"""Seats: one participant in one meeting. A seat receives posts, writes entries, and collects posts to send.

It does not know the store: the caller loads its log, stores the `fresh` entries, and sends `outgoing`.
"""

from __future__ import annotations

from roost.core.meetings.games.games import Games
from roost.core.meetings.games.registry import GAMES
from roost.core.meetings.log.bodies import (
    Accepted,
    Body,
    Declined,
    EntryId,
    EntryKind,
    Invited,
    Joined,
    Kicked,
    Withheld,
    kind_of,
    text_of,
)
from roost.core.meetings.log.digests import Digest
from roost.core.meetings.log.entries import Entry
from roost.core.meetings.log.log import Log, check_sender
from roost.core.meetings.log.posts import MOST_ENTRIES, Post
from roost.core.meetings.log.shapes import MOST_REASON
from roost.core.meetings.log.stamps import HybridClock
from roost.core.meetings.participants import decisions
from roost.core.meetings.participants.versions import Version
from roost.core.meetings.view.view import ParticipantStatus, Phase, View
from roost.errors import Forbidden, Invalid

MOST_ACTS = 8
"""Maximum automatic entries in a row: accept, start, skip a turn, end."""
THERE = (ParticipantStatus.IN, ParticipantStatus.INVITED)
_NOBODY: frozenset[str] = frozenset()


def _is_same(held: Entry | None, entry: Entry) -> bool:
    """Return whether both are the same entry; mostly they are the same object."""
    return held is entry or held == entry


class Seat:
    """Seat of one participant, for one operation. `log` and `view` include all it has heard and written."""

    def __init__(self, me: str, version: Version, *, games: Games = GAMES) -> None:
        self.me = me
        self.version = version
        self.fresh: dict[EntryId, Entry] = {}
        self.outgoing: list[tuple[str, Post]] = []
        self._games = games
        self._asked: set[str] = set()

    @property
    def log(self) -> Log:
        return self.version.log

    @property
    def view(self) -> View:
        return self.version.view

    @property
    def status(self) -> ParticipantStatus | None:
        participant = self.view.participants.get(self.me)
        return participant.status if participant is not None else None

    # --- hearing ---------------------------------------------------------------------------------

    def hear(self, sender: str, post: Post) -> None:
        """Merge a post; invalid entries are ignored. Asks for gaps."""
        before, view = self.log, self.view
        taken = [entry for entry in post.entries if self._takes(entry, sender, post, view)]
        new: dict[EntryId, Entry] = {}
        if taken:
            self.version = self.version.added(taken)
            log = self.log
            new = {
                entry.id: entry
                for entry in taken
                if _is_same(log.get(entry.id), entry) and not _is_same(before.get(entry.id), entry)
            }
            self.fresh |= new
        # Only after something new: two participants that lack the same would ask each other endlessly.
        if new and post.more:
            self.ask(sender)
        for author in sorted({entry.author for key, entry in new.items() if key in self.log.waiting}):
            self.ask(sender)
            self.ask(author)  # who has all that it had seen
        if post.digest is not None:
            self._answer(sender, post.digest)

    def _takes(self, entry: Entry, sender: str, post: Post, view: View) -> bool:
        try:
            check_sender(entry, sender, is_answer=post.is_answer)
        except Forbidden:
            return False
        if self.log.refusal(entry) is not None:
            return False
        if post.is_answer or view.call is None or sender in view.participants or self.log.missing(entry.seen):
            return True
        return isinstance(entry.body, Joined) and view.call.open

    def _answer(self, sender: str, digest: Digest) -> None:
        view = self.view
        participant = view.participants.get(sender)
        is_known = participant is not None or (view.call is not None and view.call.open)
        if not is_known or (digest.meeting, digest.creator) != (self.log.meeting, self.log.creator):
            return
        if self._lacks(digest):
            self.ask(sender)
        if participant is not None and participant.status is ParticipantStatus.KICKED:  # everything up to its removal
            lacking = self._until_kicked(sender, digest)
        else:  # also one that has left: it has come back, and may not know that it is too late
            lacking = self.log.answer_to(digest, MOST_ENTRIES + 1)
        if lacking:
            self._give(sender, lacking[:MOST_ENTRIES], more=len(lacking) > MOST_ENTRIES)

    def _lacks(self, digest: Digest) -> bool:
        """Return whether the digest covers an entry that is missing here."""
        own = self.log.digest().heads
        return any(
            author not in own
            or head.length > own[author].length
            or (head.length == own[author].length and head.checksum != own[author].checksum)
            for author, head in digest.heads.items()
        )

    def _until_kicked(self, who: str, digest: Digest) -> tuple[Entry, ...]:
        kicks = [entry for entry in self.log if isinstance(entry.body, Kicked) and entry.body.who == who]
        if not kicks:
            return ()
        last = kicks[-1]
        return tuple(entry for entry in self.log.answer_to(digest) if entry is last or last.knew(entry.id))

    # --- asking ----------------------------------------------------------------------------------

    def ask(self, participant: str) -> None:
        """Send a digest to a participant, so that it sends what is missing; once each."""
        if participant != self.me and participant not in self._asked:
            self._asked.add(participant)
            self.outgoing.append((participant, Post(self.log.meeting, self.log.creator, digest=self.log.digest())))

    def ask_in_turn(self, turn: int) -> None:
        """Ask the next participant in turn; before the start also those that have not answered."""
        view = self.view
        others = [
            participant
            for participant in view.participants.values()
            if participant.status in THERE and participant.address != self.me
        ]
        if not others or not view.is_in(self.me):
            return
        asked = [others[turn % len(others)]]
        if view.phase is Phase.CALLING:
            asked += [participant for participant in others if participant.status is ParticipantStatus.INVITED]
        for participant in asked:
            self.ask(participant.address)

    def ask_all(self) -> None:
        """Ask all participants, after an absence."""
        for participant in self.view.participants.values():
            if participant.status is ParticipantStatus.IN:
                self.ask(participant.address)

    # --- writing ---------------------------------------------------------------------------------

    def write(self, body: Body, now: int) -> Entry:
        """Write an entry and send it to all. Raises Forbidden, with what to do instead, if it would be void."""
        view = self.view
        version, entry = self.version.written(self._clock(now), body, now)
        if (why := decisions.may(view, entry, self._games)) is not None:
            raise Forbidden(why)
        self.version = version
        self._announce(entry)
        if entry.kind is EntryKind.JOINED:
            self.ask_all()
        return entry

    def withhold(self, body: Body, reason: str, run: str, now: int) -> Entry:
        """Record a refused entry and send it to all. Allowed in every phase, even if nobody is present."""
        withheld = Withheld(kind_of(body), text_of(body), reason[:MOST_REASON], run)
        self.version, entry = self.version.written(self._clock(now), withheld, now)
        self._announce(entry)
        return entry

    def _announce(self, entry: Entry) -> None:
        """Keep an own entry, and send it to all present and invited."""
        self.fresh[entry.id] = entry
        body, post = entry.body, Post(self.log.meeting, self.log.creator, (entry,))
        newcomer = {body.who} if isinstance(body, Invited) else _NOBODY
        gone = {body.who} if isinstance(body, Kicked) else _NOBODY
        for address, participant in self.view.participants.items():
            if address != self.me and address not in newcomer and (participant.status in THERE or address in gone):
                self.outgoing.append((address, post))
        for address in newcomer:
            self.bring_in(address)

    def bring_in(self, newcomer: str) -> None:
        """Send the whole log to a newcomer."""
        nothing = Digest(self.log.meeting, self.log.creator, {})
        lacking = self.log.answer_to(nothing, MOST_ENTRIES + 1)
        # The last part of a long log is included: it holds the invitation.
        part = (*lacking[: MOST_ENTRIES - 1], *list(self.log)[-1:]) if len(lacking) > MOST_ENTRIES else lacking
        self._give(newcomer, part, more=len(lacking) > MOST_ENTRIES)

    def act(self, now: int, accepts: bool | None) -> None:
        """Write automatic entries: the answer to an invitation (None: its brain decides), and what is due."""
        for _ in range(MOST_ACTS):
            view = self.view
            body = self._answer_to_invitation(view, accepts) or decisions.due(view, self.me, now)
            if body is None:
                return
            try:
                self.write(body, now)
            except (Forbidden, Invalid):  # such as after a clock was set back: it is retried later
                return

    def _answer_to_invitation(self, view: View, accepts: bool | None) -> Body | None:
        participant = view.participants.get(self.me)
        if (
            accepts is None
            or participant is None
            or participant.status is not ParticipantStatus.INVITED
            or view.is_over
        ):
            return None
        return Accepted() if accepts else Declined("it takes no invitations")

    def _clock(self, now: int) -> HybridClock:
        """Return a clock that is not behind any entry here."""
        clock = HybridClock(self.me)
        for placed in reversed(self.log.order):
            if (seen := clock.receive(placed.time, now)) is not clock:
                return seen
        return clock

    def _give(self, to: str, found: tuple[Entry, ...], *, more: bool) -> None:
        self.outgoing.append((to, Post(self.log.meeting, self.log.creator, found, is_answer=True, more=more)))
