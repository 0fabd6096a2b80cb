"""A seat: one participant at one meeting. It hears posts, writes entries, and says what is to be sent to whom.

It knows no store: whoever has loaded its log keeps what is `fresh` afterwards, and sends what is in `outgoing`.
"""

from __future__ import annotations

from roost.core.meetings import decisions
from roost.core.meetings.bodies import Accepted, Body, Declined, EntryId, Invited, Joined, Kicked, Kind
from roost.core.meetings.catalogue import GAMES
from roost.core.meetings.digests import Digest
from roost.core.meetings.entries import Entry
from roost.core.meetings.games import Games
from roost.core.meetings.log import Log, check_sender
from roost.core.meetings.posts import MOST_ENTRIES, Post
from roost.core.meetings.stamps import Clock
from roost.core.meetings.versions import Version
from roost.core.meetings.view import Phase, Status, View
from roost.errors import Forbidden, Invalid

MOST_ACTS = 8
"""What one does of itself one after the other: accept, start, pass a turn on, end."""
THERE = (Status.IN, Status.INVITED)
_NOBODY: frozenset[str] = frozenset()


def _is(held: Entry | None, one: Entry) -> bool:
    """Mostly it is the very same, which is quickly seen."""
    return held is one or held == one


class Seat:
    """Used and thrown away. `log` and `view` are as they are after all that it has heard and written."""

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
    def status(self) -> Status | None:
        one = self.view.participants.get(self.me)
        return one.status if one is not None else None

    # --- hearing ---------------------------------------------------------------------------------

    def hear(self, sender: str, post: Post) -> None:
        """Take what can be taken; what is not in order is left, and changes nothing. Gaps are asked for."""
        before, view = self.log, self.view
        taken = [entry for entry in post.entries if self._takes(entry, sender, post, view)]
        new: dict[EntryId, Entry] = {}
        if taken:
            self.version = self.version.added(taken)
            log = self.log
            new = {one.id: one for one in taken if _is(log.get(one.id), one) and not _is(before.get(one.id), one)}
            self.fresh |= new
        # Only after something new: two who lack the same would ask each other without end.
        if new and post.more:
            self.ask(sender)
        for author in sorted({one.author for key, one in new.items() if key in self.log.waiting}):
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
        one = view.participants.get(sender)
        is_known = one is not None or (view.call is not None and view.call.open)
        if not is_known or (digest.meeting, digest.creator) != (self.log.meeting, self.log.creator):
            return
        if self._lacks(digest):
            self.ask(sender)
        if one is not None and one.status is Status.KICKED:  # all that was before, and that it was sent away
            lacking = self._until_kicked(sender, digest)
        else:  # also one who has gone: whoever asks has come back, and may not know that it was too late
            lacking = self.log.answer_to(digest, MOST_ENTRIES + 1)
        if lacking:
            self._give(sender, lacking[:MOST_ENTRIES], more=len(lacking) > MOST_ENTRIES)

    def _lacks(self, digest: Digest) -> bool:
        """Whether whoever has that digest has something that is not here."""
        mine = self.log.digest().heads
        return any(
            author not in mine or head.length > mine[author].length
            or (head.length == mine[author].length and head.checksum != mine[author].checksum)
            for author, head in digest.heads.items()
        )  # fmt: skip

    def _until_kicked(self, who: str, digest: Digest) -> tuple[Entry, ...]:
        kicks = [entry for entry in self.log if isinstance(entry.body, Kicked) and entry.body.who == who]
        if not kicks:
            return ()
        last = kicks[-1]
        return tuple(one for one in self.log.answer_to(digest) if one is last or last.knew(one.id))

    # --- asking ----------------------------------------------------------------------------------

    def ask(self, whom: str) -> None:
        """Tell somebody what is here, so that they send what is not; each once."""
        if whom != self.me and whom not in self._asked:
            self._asked.add(whom)
            self.outgoing.append((whom, Post(self.log.meeting, self.log.creator, digest=self.log.digest())))

    def ask_in_turn(self, turn: int) -> None:
        """Ask one of those who are there, another one each time; before the start those who have not answered too."""
        view = self.view
        others = [one for one in view.participants.values() if one.status in THERE and one.address != self.me]
        if not others or not view.is_in(self.me):
            return
        asked = [others[turn % len(others)]]
        if view.phase is Phase.CALLING:
            asked += [one for one in others if one.status is Status.INVITED]
        for one in asked:
            self.ask(one.address)

    def ask_all(self) -> None:
        """After having been away."""
        for one in self.view.participants.values():
            if one.status is Status.IN:
                self.ask(one.address)

    # --- writing ---------------------------------------------------------------------------------

    def write(self, body: Body, now: int) -> Entry:
        """Say it to all who are there. Raises Forbidden, with what to do instead, for what would be void."""
        view = self.view
        version, entry = self.version.written(self._clock(now), body, now)
        if (why := decisions.may(view, entry, self._games)) is not None:
            raise Forbidden(why)
        self.version = version
        self.fresh[entry.id] = entry
        after = self.view
        newcomer = {body.who} if isinstance(body, Invited) else _NOBODY
        gone = {body.who} if isinstance(body, Kicked) else _NOBODY
        post = Post(self.log.meeting, self.log.creator, (entry,))
        for address, one in after.participants.items():
            if address != self.me and address not in newcomer and (one.status in THERE or address in gone):
                self.outgoing.append((address, post))
        for address in newcomer:
            self.bring_in(address)
        if entry.kind is Kind.JOINED:
            self.ask_all()
        return entry

    def bring_in(self, newcomer: str) -> None:
        """Everything from the beginning."""
        nothing = Digest(self.log.meeting, self.log.creator, {})
        lacking = self.log.answer_to(nothing, MOST_ENTRIES + 1)
        # Of much the last part goes along: it is what tells the newcomer that it is invited.
        part = (*lacking[: MOST_ENTRIES - 1], *list(self.log)[-1:]) if len(lacking) > MOST_ENTRIES else lacking
        self._give(newcomer, part, more=len(lacking) > MOST_ENTRIES)

    def act(self, now: int, accepts: bool | None) -> None:
        """Do what is to be done without being asked: answer an invitation (None: not of itself), and what is due."""
        for _ in range(MOST_ACTS):
            view = self.view
            body = self._answer_to_invitation(view, accepts) or decisions.due(view, self.me, now)
            if body is None:
                return
            try:
                self.write(body, now)
            except (Forbidden, Invalid):  # e.g. a clock that was set back: it is tried again later
                return

    def _answer_to_invitation(self, view: View, accepts: bool | None) -> Body | None:
        one = view.participants.get(self.me)
        if accepts is None or one is None or one.status is not Status.INVITED or view.is_over:
            return None
        return Accepted() if accepts else Declined("it takes no invitations")

    def _clock(self, now: int) -> Clock:
        """As after all that is here: it is behind nothing that can be followed."""
        clock = Clock(self.me)
        for placed in reversed(self.log.order):
            if (seen := clock.receive(placed.time, now)) is not clock:
                return seen
        return clock

    def _give(self, to: str, found: tuple[Entry, ...], *, more: bool) -> None:
        self.outgoing.append((to, Post(self.log.meeting, self.log.creator, found, is_answer=True, more=more)))
