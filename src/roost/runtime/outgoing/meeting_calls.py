"""Calls of meetings: check the options, address the participants, and build the first entry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.envelopes.sender import SenderContext
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.log.bodies import Bounds, Called, FloorRule
from roost.core.meetings.log.entries import Entry, check
from roost.core.meetings.log.stamps import Stamp, milliseconds
from roost.core.meetings.options import MeetingOptions
from roost.core.meetings.participants import decisions
from roost.core.meetings.view.view import View
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.errors import Forbidden, Invalid, LimitReached
from roost.runtime.context import RuntimeContext
from roost.runtime.outgoing.recipients import Recipients
from roost.stores.sql.meetings import registry


class MeetingCalls:
    """Builder of calls. Its coroutines await only the store, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, recipients: Recipients) -> None:
        self._context = context
        self._recipients = recipients

    async def compose(
        self, sender: SenderContext, topic: str, options: MeetingOptions, key: str | None = None
    ) -> WriteEntry:
        """Compose the call of a meeting. Raises NotFound for an unknown participant."""
        caller, host = sender.address, self._context.host
        await self._check_room(caller)
        if key is not None:
            checks.name(key, "the key")
        now = host.clock.now()
        body = await self._body(sender, topic, options, now)
        meeting_id = host.new_id("meeting")
        entry = check(Entry(meeting_id, caller, 1, Stamp(milliseconds(now)), {}, body))
        if (refused := decisions.may(View(meeting_id, caller), entry)) is not None:
            raise Forbidden(addresses.shortened(refused, sender.user_id))
        level = checks.choice(options.priority, "the priority", Priority)
        return WriteEntry(host.new_id("entry"), caller, meeting_id, body, sender.hops, sender.root, level, key)

    async def _check_room(self, caller: str) -> None:
        most = self._context.limits.meetings_at_once
        if await self._context.store.read(registry.count_called, caller) >= most:
            raise LimitReached(f"{caller} has called {most:,} meetings that are not over: end some first")

    async def _body(self, sender: SenderContext, topic: str, options: MeetingOptions, now: float) -> Called:
        user_id, limits = sender.user_id, self._context.limits
        required = await self._invitable(user_id, options.required, "required")
        optional = await self._invitable(user_id, options.optional, "optional")
        deadline = checks.seconds(options.deadline, "the deadline")
        turn_timeout = checks.seconds(options.turn_timeout, "turn_timeout")
        bounds = Bounds(
            participants=limits.meeting_participants,
            words=limits.meeting_words if options.max_words is None else options.max_words,
            moves=options.max_moves,
            turn=milliseconds(turn_timeout),
            misses=options.max_misses,
        )
        return Called(
            topic,
            milliseconds(now + deadline),
            required,
            optional,
            checks.choice(options.floor, "the floor rule", FloorRule),
            _moderator(options.moderator, user_id, (sender.address, *required, *optional)),
            options.game,
            _with_full_addresses(options.setting, user_id),
            options.open,
            bounds,
        )

    async def _invitable(self, user_id: str, addressed: Sequence[str], what: str) -> tuple[str, ...]:
        if isinstance(addressed, str) or not isinstance(addressed, list | tuple):
            raise Invalid(f"`{what}` must be a list of addresses, not {checks.shown(addressed)}")
        return tuple([await self._recipients.invitable(user_id, address) for address in addressed])


def _moderator(who: str | None, user_id: str, invited: Sequence[str]) -> str | None:
    """Return the full address of the moderator. Raises Invalid if the moderator is not invited."""
    if who is None:
        return None
    address = addresses.parse(who, user_id).text
    if address not in invited:
        raise Invalid(f"the moderator {who!r:.80} is not invited: name it as `required` or `optional` too")
    return address


def _with_full_addresses(setting: Any, user_id: str) -> Any:
    """Return the setting with the full addresses of the players."""
    players = setting.get("players") if isinstance(setting, dict) else None
    if not isinstance(players, list | tuple) or not all(isinstance(player, str) for player in players):
        return setting
    return {**setting, "players": [addresses.parse(player, user_id).text for player in players]}
