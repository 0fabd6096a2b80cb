"""Meetings: called, joined, spoken in, ended, looked at; by people, in their own name or that of their agents."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Any

from roost.core import addresses, checks
from roost.core.facts import Name
from roost.core.meetings.bodies import (
    Body,
    Declined,
    Ended,
    EntryId,
    Granted,
    Invited,
    Kicked,
    Left,
    Moved,
    Passed,
    Raised,
    Said,
)
from roost.core.meetings.minutes import minutes as minutes_of
from roost.core.meetings.shown import MeetingSummary, MeetingView, Spoken, shown, spoken
from roost.core.meetings.view import Phase, View
from roost.core.messages import MOST, PAGE
from roost.errors import Conflict, Forbidden, Invalid, Unavailable
from roost.ports import Acted, Pending, Seated
from roost.ports.statements.meetings import watched
from roost.runtime.agents import LAST
from roost.runtime.hall import Hall
from roost.runtime.shop import Shop

SLOW_LOOK = 1.0
"""Seconds after which whoever waits for news looks without having been told of any."""


class Meetings:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them.

    A person takes part as `user:ann`, and may act for their agents: `by="agent:d"`. Each participant has a view of
    its own; views may differ for a moment, and come to be the same. What the rules of a meeting refuse is Forbidden.
    """

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.meetings

    # --- acting ----------------------------------------------------------------------------------

    async def call(
        self, user_id: str, topic: str, *, required: Sequence[str] = (), optional: Sequence[str] = (),
        floor: str = "free", moderator: str | None = None, game: str | None = None, setting: Any = None,
        deadline: float = 60.0, open: bool = False, max_words: int | None = None, max_moves: int = 100,
        turn_timeout: float = 300.0, max_misses: int = 2, priority: str = "normal", by: str | None = None,
        key: str | None = None,
    ) -> str:  # fmt: skip
        """Call a meeting; its id. It begins when all who are required have come, or fails after `deadline` seconds.

        `floor`: free, round_robin, raise_hand, moderator or mention. `open`: whoever knows its id may join. With the
        same `key` again it is the same meeting. Whoever has the floor, or is to move, has `turn_timeout` seconds for it
        (0: no end); a player who has let that go by `max_misses` times for one move has lost.
        """
        return await self.convene(
            user_id, self._who(user_id, by), topic, required=required, optional=optional, floor=floor,
            moderator=moderator, game=game, setting=setting, deadline=deadline, open=checks.flag(open, "`open`"),
            max_words=max_words, max_moves=max_moves, turn_timeout=turn_timeout, max_misses=max_misses,
            priority=priority, key=key,
        )  # fmt: skip

    async def convene(self, owner: str, caller: str, topic: str, **options: Any) -> str:
        """Call a meeting in the name of the owner or of an agent of theirs, as a link in a chain of messages."""
        self._check()
        effect = await self._hall.office.call(owner, caller, topic, **options)
        acted: Acted = await self._shop.store.write(
            self._ops.call, effect, self._now(), self._awake(caller), then=self._acted
        )  # fmt: skip
        if acted.seated.meeting_id == effect.meeting_id:
            kind, _, rest = caller.partition(":")
            data = {"meeting_id": effect.meeting_id, "participant": caller}
            about = rest if kind == "agent" else f"{rest}/"
            self._shop.monitor.tell(Name.MEETING_CALLED, about, data, root=effect.meeting_id)
        return acted.seated.meeting_id

    async def join(self, user_id: str, meeting_id: str, *, by: str | None = None) -> MeetingView:
        """Accept an invitation; or come late, or again, or to an open meeting, or to where an agent of one's own is."""
        who = self._who(user_id, by)
        self._check(meeting_id)
        return self._shown(
            await self._wrote(user_id, self._ops.join, user_id, who, meeting_id, self._now(), self._awake(who))
        )

    async def decline(
        self, user_id: str, meeting_id: str, reason: str = "", *, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """Do not come."""
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Declined(reason)))

    async def leave(
        self, user_id: str, meeting_id: str, reason: str = "", *, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """Go. The last one there ends the meeting instead."""
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Left(reason)))

    async def say(
        self, user_id: str, meeting_id: str, text: str, *, to: Sequence[str] = (), hand: bool = False,
        by: str | None = None, key: str | None = None,
    ) -> Spoken:  # fmt: skip
        """Say something to all. `to`: who is mentioned; `hand`: there is more to say after this.

        With the same `key` and text again it is said once.
        """
        mentioned = tuple(self._whom(user_id, one) for one in _listed(to))
        said = Said(text, mentioned, checks.flag(hand, "`hand`"))
        acted = await self._act(user_id, meeting_id, by, lambda _: said, key)
        author, view = acted.seated.participant, acted.seated.version.view
        for number, word in zip(range(len(view.words), 0, -1), reversed(view.words), strict=True):
            if word.author == author and (acted.number in (0, word.entry_id.number)) and word.text == text:
                return spoken(word, number)
        raise Conflict("it was said before, and does not count any more: look at the meeting")

    async def move(
        self, user_id: str, meeting_id: str, move: Any, *, by: str | None = None, key: str | None = None
    ) -> MeetingView:  # fmt: skip
        """Change the shared state by the rules of the game; tic-tac-toe takes `{"cell": 5}`."""

        def make(view: View) -> Body:
            return Moved(view.head or EntryId(view.creator, 1), move)

        return self._shown(await self._act(user_id, meeting_id, by, make, key))

    async def raise_hand(self, user_id: str, meeting_id: str, *, by: str | None = None) -> MeetingView:
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Raised()))

    async def grant(self, user_id: str, meeting_id: str, who: str, *, by: str | None = None) -> MeetingView:
        """Give somebody the floor, as the moderator."""
        granted = Granted(self._whom(user_id, who))
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: granted))

    async def pass_turn(
        self, user_id: str, meeting_id: str, who: str | None = None, *, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """Let one's own turn go by; or, as chair or moderator, somebody else's; after a long silence anyone's."""
        whose = self._who(user_id, by) if who is None else self._whom(user_id, who)
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Passed(whose)))

    async def invite(
        self, user_id: str, meeting_id: str, who: str, *, required: bool = False, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """One more; whoever comes late gets everything from the beginning."""
        checks.name(user_id, "the user id")
        invited = Invited(await self._hall.office.guest(user_id, who), checks.flag(required, "`required`"))
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: invited))

    async def kick(
        self, user_id: str, meeting_id: str, who: str, reason: str = "", *, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """Send somebody away, as the chair."""
        kicked = Kicked(self._whom(user_id, who), reason)
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: kicked))

    async def end(
        self, user_id: str, meeting_id: str, minutes: str = "", *, by: str | None = None
    ) -> MeetingView:  # fmt: skip
        """End it for all; without `minutes` there are those made from what was said."""
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Ended(minutes)))

    # --- looking ---------------------------------------------------------------------------------

    async def view(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, limit: int = PAGE
    ) -> MeetingView:  # fmt: skip
        """As one sees it oneself, or `seen_by` one's agent; so many of the newest words.

        Of a meeting that is long over only the minutes are left: then it is Forbidden.
        """
        checks.count(limit, "the limit", least=0, most=MOST)
        who, seated, _ = await self._seen(user_id, meeting_id, seen_by)
        if seated is None:
            raise Forbidden(f"the meeting {meeting_id!r:.80} is long over: only its minutes are left, ask for these")
        return shown(seated.version.view, who, _cursor(seated), limit)

    async def list(
        self, user_id: str, *, participant: str | None = None, phase: str | None = None, limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[MeetingSummary]:  # fmt: skip
        """Newest first: those in which one takes part oneself, or one's agents; or only that `participant`.

        `before` is the id of the last one of the page before.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        wanted = None if phase is None else checks.choice(phase, "the phase", Phase)
        who = None if participant is None else addresses.parse(participant, user_id).text
        last = checks.place(before, "`before`") or LAST
        found: builtins.list[MeetingSummary] = await self._shop.store.read(
            self._ops.listed, user_id, who, wanted, limit, last
        )
        return found

    async def minutes(self, user_id: str, meeting_id: str, *, seen_by: str | None = None) -> str:
        """As Markdown: topic, when, who, what was said, what came of it. Of one under way: so far."""
        _, seated, kept = await self._seen(user_id, meeting_id, seen_by)
        return addresses.familiar(minutes_of(seated.version.view) if seated is not None else kept, user_id)

    async def wait(
        self, user_id: str, meeting_id: str, after: str, *, seen_by: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> MeetingView:  # fmt: skip
        """As it is once it differs from the view with this cursor; as it is if it is over, or the time is."""
        clock, bells = self._shop.host.clock, self._hall.listener.bells
        latest = None if timeout is None else clock.monotonic() + checks.seconds(timeout, "the timeout")
        checks.name(after, "the cursor")
        checks.name(meeting_id, "the meeting id")
        while True:
            bell: Pending[None] = self._shop.host.pending()
            bells.setdefault(meeting_id, []).append(bell)  # listen first, then look, then wait
            try:
                found = await self.view(user_id, meeting_id, seen_by=seen_by)
                left = SLOW_LOOK if latest is None else min(SLOW_LOOK, latest - clock.monotonic())
                if found.cursor != after or found.is_over or left <= 0 or self._hall.closing:
                    return found
                await bell.within(left)
            finally:
                _unlisten(bells, meeting_id, bell)

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> AsyncIterator[MeetingView]:
        """As it is, and again whenever it has changed. Waits; ends when the meeting is over, or the program is."""
        checks.name(user_id, "the user id")
        view = partial(self.view, user_id, meeting_id, seen_by=seen_by)
        wait = partial(self.wait, user_id, meeting_id, seen_by=seen_by)
        return watched(view, wait, after, lambda: self._hall.closing)

    # --- inside ----------------------------------------------------------------------------------

    async def _act(
        self, user_id: str, meeting_id: str, by: str | None, make: Callable[[View], Body], key: str | None = None
    ) -> Acted:
        who = self._who(user_id, by)
        self._check(meeting_id)
        if key is not None:
            checks.name(key, "the key")
        return await self._wrote(
            user_id, self._ops.act, user_id, who, meeting_id, make, self._now(), key, self._awake(who)
        )

    async def _wrote(self, user_id: str, op: Callable[..., Acted], *given: Any) -> Acted:
        """What is refused is told to the user in their own words."""
        try:
            return await self._shop.store.write(op, self._shop.host.new_id("post"), *given, then=self._acted)
        except Forbidden as refused:
            raise Forbidden(addresses.familiar(str(refused), user_id)) from None

    def _acted(self, acted: Acted) -> None:
        """On the writer's thread, after the commit."""
        listener = self._hall.listener
        listener.ring(acted.seated.meeting_id)
        listener.told(acted.changes)
        self._hall.posted(acted.posted)

    async def _seen(
        self, user_id: str, meeting_id: str, seen_by: str | None
    ) -> tuple[str, Seated | None, str]:  # fmt: skip
        checks.name(user_id, "the user id")
        checks.name(meeting_id, "the meeting id")
        who = None if seen_by is None else addresses.parse(seen_by, user_id).text
        return await self._shop.store.read(self._ops.seen, user_id, meeting_id, who)

    def _who(self, user_id: str, by: str | None) -> str:
        checks.name(user_id, "the user id")
        if by is None:
            return f"user:{user_id}"
        address = addresses.of_agent(by, user_id)
        if address.user_id != user_id:
            raise addresses.unknown(address.agent_id)
        return address.text

    def _whom(self, user_id: str, who: str) -> str:
        checks.name(user_id, "the user id")
        return addresses.parse(who, user_id).text

    def _check(self, meeting_id: str | None = None) -> None:
        if meeting_id is not None:
            checks.name(meeting_id, "the meeting id")
        if self._hall.closing:
            raise Unavailable("this Roost is closing: do it again after its restart")
        self._shop.memory.check()

    def _awake(self, who: str) -> frozenset[str]:
        key = who.removeprefix("agent:")
        return frozenset({key} if self._hall.is_awake(key) else ())

    def _shown(self, acted: Acted) -> MeetingView:
        seated = acted.seated
        return shown(seated.version.view, seated.participant, _cursor(seated), PAGE)

    def _now(self) -> float:
        return self._shop.host.clock.now()


def _cursor(seated: Seated) -> str:
    return seated.version.contents or "0"


def _listed(whom: Sequence[str]) -> Sequence[str]:
    if isinstance(whom, str) or not isinstance(whom, list | tuple):
        raise Invalid(f"`to` must be a list of addresses, not {checks.shown(whom)}")
    return whom


def _unlisten(bells: dict[str, builtins.list[Pending[Any]]], meeting_id: str, bell: Pending[Any]) -> None:
    left = [one for one in bells.get(meeting_id, ()) if one is not bell]
    if left:
        bells[meeting_id] = left
    else:
        bells.pop(meeting_id, None)
