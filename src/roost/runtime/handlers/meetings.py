"""Meetings: call, join, speak, end and view, as a user or as one of their agents."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from typing import Annotated, Any

from roost.core.envelopes.sender import SenderContext
from roost.core.meetings.log.bodies import (
    Body,
    Declined,
    Ended,
    EntryId,
    Failed,
    Granted,
    Invited,
    Kicked,
    Left,
    Moved,
    Passed,
    Raised,
    Said,
)
from roost.core.meetings.options import MeetingOptions
from roost.core.meetings.participants.decisions import without_its_creator
from roost.core.meetings.participants.participant_log import ParticipantLog
from roost.core.meetings.view.minutes import minutes as minutes_of
from roost.core.meetings.view.shown import MeetingOverview, MeetingSummary, MeetingView, Spoken, shown, spoken
from roost.core.meetings.view.view import Phase, View
from roost.core.meetings.view.watch import watched
from roost.core.monitoring.facts import FactRow, Name
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import addresses, checks
from roost.core.values.traits import NewId, ReplyField, idempotent, reads
from roost.errors import Conflict, Forbidden, Invalid, Unavailable
from roost.ports import Pending
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.stores.sql.meetings import actions, registry
from roost.stores.sql.meetings.outcomes import ActionResult

SLOW_LOOK = 1.0
"""Seconds between two polls of a caller that waits for a change."""


class Meetings:
    """Meetings of the service. Its coroutines await only pendings, so that plain threads can drive them.

    A person takes part as `user:ann`, and may act for their agents: `by="agent:d"`. Each participant has a view of
    its own; views may differ for a moment and then converge. Raise Forbidden for what the rules of a meeting refuse.
    """

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    # --- acting ----------------------------------------------------------------------------------

    async def call(
        self,
        user_id: str,
        topic: str,
        *,
        required: Sequence[str] = (),
        optional: Sequence[str] = (),
        floor: str = "free",
        moderator: str | None = None,
        game: str | None = None,
        setting: Any = None,
        deadline: float = 60.0,
        open: bool = False,
        max_words: int | None = None,
        max_moves: int = 100,
        turn_timeout: float = 300.0,
        max_misses: int = 2,
        priority: str = "normal",
        by: str | None = None,
        key: str | None = None,
    ) -> NewId:
        """Call a meeting; return its id. It begins when all required have joined, or fails after `deadline` seconds.

        `floor`: free, round_robin, raise_hand, moderator or mention. `open`: anyone who knows its id may join. A call
        with the same `key` returns the same meeting. The holder of the floor, or the player to move, has `turn_timeout`
        seconds (0: no limit); a player who misses `max_misses` of them for one move loses.
        """
        options = MeetingOptions(
            required=required,
            optional=optional,
            floor=floor,
            moderator=moderator,
            game=game,
            setting=setting,
            deadline=deadline,
            open=checks.flag(open, "`open`"),
            max_words=max_words,
            max_moves=max_moves,
            turn_timeout=turn_timeout,
            max_misses=max_misses,
            priority=priority,
        )
        return await self.convene(SenderContext(user_id, self._actor(user_id, by)), topic, options, key)

    async def convene(self, sender: SenderContext, topic: str, options: MeetingOptions, key: str | None) -> str:
        """Call a meeting as the owner or as one of their agents, as a link in a chain of messages."""
        self._check()
        caller = sender.address
        effect = await self._dispatcher.composer.meetings.compose(sender, topic, options, key)
        acted: ActionResult = await self._context.store.write(
            actions.call,
            effect,
            self._now(),
            self._awake(caller),
            facts=partial(self._call_facts, effect.meeting_id, caller),
            then=self._after_commit,
        )
        return acted.seated.meeting_id

    async def join(self, user_id: str, meeting_id: str, *, by: str | None = None) -> MeetingView:
        """Accept an invitation, join late or again, or join an open meeting or one of an own agent."""
        who = self._actor(user_id, by)
        self._check(meeting_id)
        return self._shown(
            await self._written(user_id, actions.join, user_id, who, meeting_id, self._now(), self._awake(who))
        )

    async def decline(self, user_id: str, meeting_id: str, reason: str = "", *, by: str | None = None) -> MeetingView:
        """Decline an invitation."""
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Declined(reason)))

    async def leave(self, user_id: str, meeting_id: str, reason: str = "", *, by: str | None = None) -> MeetingView:
        """Leave a meeting. The last participant ends it. If the creator leaves before the start, it fails."""
        return self._shown(
            await self._act(user_id, meeting_id, by, partial(_leaving, self._actor(user_id, by), reason))
        )

    async def say(
        self,
        user_id: str,
        meeting_id: str,
        text: str,
        *,
        to: Sequence[str] = (),
        hand: bool = False,
        by: str | None = None,
        key: str | None = None,
    ) -> Spoken:
        """Say something to all. `to`: participants to mention; `hand`: raise a hand to say more.

        A repeated call with the same `key` and text says it once.
        """
        mentioned = tuple(self._participant(user_id, participant) for participant in _listed(to))
        said = Said(text, mentioned, checks.flag(hand, "`hand`"))
        acted = await self._act(user_id, meeting_id, by, lambda _: said, key)
        author, view = acted.seated.participant, acted.seated.version.view
        for number, word in zip(range(len(view.words), 0, -1), reversed(view.words), strict=True):
            if word.author == author and (acted.number in (0, word.entry_id.number)) and word.text == text:
                return spoken(word, number)
        raise Conflict("this message was posted before and is void now: see the view of the meeting")

    async def move(
        self, user_id: str, meeting_id: str, move: Any, *, by: str | None = None, key: str | None = None
    ) -> MeetingView:
        """Change the shared state by the rules of the game; tic-tac-toe takes `{"cell": 5}`."""

        def make(view: View) -> Body:
            return Moved(view.head or EntryId(view.creator, 1), move)

        return self._shown(await self._act(user_id, meeting_id, by, make, key))

    async def raise_hand(self, user_id: str, meeting_id: str, *, by: str | None = None) -> MeetingView:
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Raised()))

    async def grant(self, user_id: str, meeting_id: str, who: str, *, by: str | None = None) -> MeetingView:
        """Give a participant the floor, as the moderator."""
        granted = Granted(self._participant(user_id, who))
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: granted))

    async def pass_turn(
        self, user_id: str, meeting_id: str, who: str | None = None, *, by: str | None = None
    ) -> MeetingView:
        """Skip the own turn; or that of another participant, as chair or moderator, or after a long silence."""
        whose = self._actor(user_id, by) if who is None else self._participant(user_id, who)
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Passed(whose)))

    async def invite(
        self, user_id: str, meeting_id: str, who: str, *, required: bool = False, by: str | None = None
    ) -> MeetingView:
        """Invite another participant; one that joins late gets the whole log."""
        checks.name(user_id, "the user id")
        invited = Invited(
            await self._dispatcher.composer.recipients.invitable(user_id, who), checks.flag(required, "`required`")
        )
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: invited))

    async def kick(
        self, user_id: str, meeting_id: str, who: str, reason: str = "", *, by: str | None = None
    ) -> MeetingView:
        """Remove a participant, as the chair."""
        kicked = Kicked(self._participant(user_id, who), reason)
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: kicked))

    async def end(self, user_id: str, meeting_id: str, minutes: str = "", *, by: str | None = None) -> MeetingView:
        """End a meeting for all; without `minutes`, they are generated from the log."""
        return self._shown(await self._act(user_id, meeting_id, by, lambda _: Ended(minutes)))

    @idempotent
    async def cancel(self, user_id: str, meeting_id: str, reason: str = "", *, by: str | None = None) -> MeetingView:
        """Cancel an own call before the start: the meeting fails, and all invited participants get the reason.

        Cancelling again has no effect.
        """
        who = self._actor(user_id, by)
        try:
            return self._shown(await self._act(user_id, meeting_id, by, partial(_cancelling, who, reason)))
        except Forbidden:
            view = await self.view(user_id, meeting_id, seen_by=who)
            if view.phase == Phase.FAILED and view.reason.startswith(_cancelled_by(who)):
                return view
            raise

    # --- looking ---------------------------------------------------------------------------------

    async def view(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, limit: int = PAGE
    ) -> MeetingView:
        """Return the view of the user, or of the agent `seen_by`, with the newest `limit` messages.

        Raises Forbidden for a meeting of which only the minutes are kept.
        """
        checks.count(limit, "the limit", least=0, most=MOST)
        who, seated, _ = await self._seen(user_id, meeting_id, seen_by)
        if seated is None:
            raise Forbidden(f"the meeting {meeting_id!r:.80} is archived: only its minutes are left, use `minutes`")
        return shown(seated.version.view, who, _cursor(seated), limit)

    async def list(
        self,
        user_id: str,
        *,
        participant: str | None = None,
        phase: str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[MeetingSummary]:
        """Return meetings of the user and their agents, newest first; or only those of a `participant`.

        `before` is the last id of the previous page.
        """
        found: builtins.list[MeetingSummary] = await self._context.store.read(
            registry.listed, user_id, *_filter(user_id, participant, phase, limit, before)
        )
        return found

    @reads
    async def overview(
        self,
        user_id: str,
        *,
        participant: str | None = None,
        phase: str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[MeetingOverview]:
        """Return meetings as `list` does, each with its view, which has no messages."""
        found: builtins.list[tuple[MeetingSummary, ParticipantLog | None]] = await self._context.store.read(
            registry.overview, user_id, *_filter(user_id, participant, phase, limit, before)
        )
        return [
            MeetingOverview(summary.meeting_id, summary, self._brief(seated) if seated is not None else None)
            for summary, seated in found
        ]

    @reads
    async def views(self, user_id: str, meeting_id: str) -> builtins.list[MeetingView]:
        """Return the views of the user and of their agents in a meeting, without messages; the user's is first.

        Views differ while entries are on their way. The list is empty if only the minutes are kept.
        """
        checks.name(user_id, "the user id")
        checks.name(meeting_id, "the meeting id")
        found: builtins.list[ParticipantLog] = await self._context.store.read(registry.views, user_id, meeting_id)
        return [self._brief(seated) for seated in found]

    @reads
    async def minutes(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None
    ) -> Annotated[str, ReplyField("text")]:
        """Return the minutes as Markdown: topic, times, participants, messages and result so far."""
        _, seated, kept = await self._seen(user_id, meeting_id, seen_by)
        return addresses.shortened(minutes_of(seated.version.view) if seated is not None else kept, user_id)

    @reads
    async def wait(
        self,
        user_id: str,
        meeting_id: str,
        after: str,
        *,
        seen_by: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> MeetingView:
        """Return the view once it differs from the one with this cursor, the meeting is over, or the time is up."""
        clock, waiters = self._context.host.clock, self._dispatcher.meeting_delivery.waiters
        latest = None if timeout is None else clock.monotonic() + checks.seconds(timeout, "the timeout")
        checks.name(after, "the cursor")
        checks.name(meeting_id, "the meeting id")
        while True:
            waiter: Pending[None] = self._context.host.pending()
            waiters.setdefault(meeting_id, []).append(waiter)  # listen first, then check, then wait
            try:
                found = await self.view(user_id, meeting_id, seen_by=seen_by)
                left = SLOW_LOOK if latest is None else min(SLOW_LOOK, latest - clock.monotonic())
                if found.cursor != after or found.is_over or left <= 0 or self._dispatcher.closing:
                    return found
                await waiter.within(left)
            finally:
                _unlisten(waiters, meeting_id, waiter)

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> AsyncIterator[MeetingView]:
        """Yield the view, and again after each change, until the meeting is over or Roost closes."""
        checks.name(user_id, "the user id")
        view = partial(self.view, user_id, meeting_id, seen_by=seen_by)
        wait = partial(self.wait, user_id, meeting_id, seen_by=seen_by)
        return watched(view, wait, after, lambda: self._dispatcher.closing)

    # --- inside ----------------------------------------------------------------------------------

    async def _act(
        self, user_id: str, meeting_id: str, by: str | None, make: Callable[[View], Body], key: str | None = None
    ) -> ActionResult:
        who = self._actor(user_id, by)
        self._check(meeting_id)
        if key is not None:
            checks.name(key, "the key")
        return await self._written(
            user_id, actions.act, user_id, who, meeting_id, make, self._now(), key, self._awake(who)
        )

    async def _written(self, user_id: str, op: Callable[..., ActionResult], *args: Any) -> ActionResult:
        """Raise the refusal with addresses as the user writes them."""
        try:
            return await self._context.store.write(
                op, self._context.host.new_id("post"), *args, facts=self._facts, then=self._after_commit
            )
        except Forbidden as refused:
            raise Forbidden(addresses.shortened(str(refused), user_id)) from None

    def _facts(self, acted: ActionResult) -> Sequence[FactRow]:
        return self._dispatcher.meeting_delivery.facts(acted.changes)

    def _call_facts(self, meeting_id: str, caller: str, acted: ActionResult) -> Sequence[FactRow]:
        if acted.seated.meeting_id != meeting_id:  # a repeated call
            return self._facts(acted)
        kind, _, rest = caller.partition(":")
        data, about = {"meeting_id": meeting_id, "participant": caller}, rest if kind == "agent" else f"{rest}/"
        called = self._context.facts.fact(Name.MEETING_CALLED, about, data, root=meeting_id)
        return [called, *self._facts(acted)]

    def _after_commit(self, acted: ActionResult) -> None:
        """Notify the participants, on the writer's thread after the commit."""
        delivery = self._dispatcher.meeting_delivery
        delivery.wake_waiters(acted.seated.meeting_id)
        delivery.notify(acted.changes)
        self._dispatcher.posted(acted.posted)

    async def _seen(self, user_id: str, meeting_id: str, seen_by: str | None) -> tuple[str, ParticipantLog | None, str]:
        checks.name(user_id, "the user id")
        checks.name(meeting_id, "the meeting id")
        who = None if seen_by is None else addresses.parse(seen_by, user_id).text
        return await self._context.store.read(registry.find_for_user, user_id, meeting_id, who)

    def _actor(self, user_id: str, by: str | None) -> str:
        checks.name(user_id, "the user id")
        if by is None:
            return f"user:{user_id}"
        address = addresses.of_agent(by, user_id)
        if address.user_id != user_id:
            raise addresses.unknown(address.agent_id)
        return address.text

    def _participant(self, user_id: str, who: str) -> str:
        checks.name(user_id, "the user id")
        return addresses.parse(who, user_id).text

    def _check(self, meeting_id: str | None = None) -> None:
        if meeting_id is not None:
            checks.name(meeting_id, "the meeting id")
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: try again after its restart")
        self._context.ram.check()

    def _awake(self, who: str) -> frozenset[str]:
        key = who.removeprefix("agent:")
        return frozenset({key} if self._dispatcher.is_awake(key) else ())

    def _shown(self, acted: ActionResult) -> MeetingView:
        seated = acted.seated
        return shown(seated.version.view, seated.participant, _cursor(seated), PAGE)

    def _brief(self, seated: ParticipantLog) -> MeetingView:
        return shown(seated.version.view, seated.participant, _cursor(seated), 0)

    def _now(self) -> float:
        return self._context.host.clock.now()


def _filter(
    user_id: str, participant: str | None, phase: str | None, limit: int, before: str | None
) -> tuple[str | None, str | None, int, str]:
    checks.name(user_id, "the user id")
    checks.count(limit, "the limit", least=1, most=MOST)
    wanted = None if phase is None else checks.choice(phase, "the phase", Phase)
    who = None if participant is None else addresses.parse(participant, user_id).text
    return who, wanted, limit, checks.place(before, "`before`") or AFTER_ALL_IDS


def _leaving(who: str, reason: str, view: View) -> Body:
    """Return the entry with which a participant leaves; before the start, the creator fails the meeting."""
    if view.phase is Phase.CALLING and view.creator == who and view.is_in(who):
        return Failed(without_its_creator(who, reason))
    return Left(reason)


def _cancelling(who: str, reason: str, view: View) -> Body:
    if view.phase is Phase.RUNNING and view.is_in(who):
        raise Forbidden("the meeting has begun: end it instead")
    return Failed(f"{_cancelled_by(who)}{f': {reason}' if reason else ''}")


def _cancelled_by(who: str) -> str:
    return f"cancelled by {who}"


def _cursor(seated: ParticipantLog) -> str:
    return seated.version.contents or "0"


def _listed(recipients: Sequence[str]) -> Sequence[str]:
    if isinstance(recipients, str) or not isinstance(recipients, list | tuple):
        raise Invalid(f"`to` must be a list of addresses, not {checks.shown(recipients)}")
    return recipients


def _unlisten(waiters: dict[str, builtins.list[Pending[Any]]], meeting_id: str, waiter: Pending[Any]) -> None:
    left = [other for other in waiters.get(meeting_id, ()) if other is not waiter]
    if left:
        waiters[meeting_id] = left
    else:
        waiters.pop(meeting_id, None)
