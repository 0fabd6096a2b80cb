"""Composer: validates, addresses and builds all effects, for users and for turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from roost.core.agents.agent import AgentConfig
from roost.core.agents.audience import Audience
from roost.core.envelopes.effects import Broadcast, Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.log.bodies import Bounds, Called, FloorRule
from roost.core.meetings.log.entries import Entry, check
from roost.core.meetings.log.stamps import Stamp, milliseconds
from roost.core.meetings.participants import decisions
from roost.core.meetings.view.view import View
from roost.core.values import addresses, checks, patterns
from roost.core.values.addresses import Address
from roost.core.values.priority import Priority, rank
from roost.errors import Forbidden, Invalid, LimitReached, NotFound
from roost.runtime.context import RuntimeContext
from roost.runtime.outgoing.recipients import Recipients
from roost.runtime.ports.active_agents import ActiveAgents
from roost.stores.sql.agents import agents
from roost.stores.sql.meetings import registry


class Composer:
    """Builder of effects. Its coroutines await only the store, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, agents: ActiveAgents) -> None:
        self._context = context
        self._agents = agents
        self.recipients = Recipients(context, agents)

    async def task(
        self,
        user_id: str,
        sender: str,
        to: str,
        prompt: str,
        *,
        priority: str = "normal",
        key: str | None = None,
        expires_in: float | None = None,
        max_attempts: int | None = None,
        recorded: bool = True,
        hops: int = 0,
        lane: str | None = None,
        ask: str | None = None,
        schedule_id: str | None = None,
        task_id: str | None = None,
        root: str = "",
    ) -> SendTask:
        """Compose a task. Raises NotFound for an unknown agent, LimitReached if its inbox is full."""
        checks.text(prompt, "the task", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        address = _agent(to, user_id)
        config = await self._reach(user_id, address)
        attempts = (
            config.max_attempts
            if max_attempts is None
            else checks.count(max_attempts, "max_attempts", least=1, most=1_000)
        )
        now = self._context.host.clock.now()
        lasting = config.task_expiry if expires_in is None else checks.some_time(expires_in, "expires_in")
        envelope_id = task_id or self._context.host.new_id("task" if recorded else "env")
        envelope = Envelope(
            envelope_id,
            address.key,
            Kind.TASK,
            lane or envelope_id,
            level,
            sender,
            prompt,
            now,
            rank(now, level),
            most_attempts=attempts,
            retry_delay=config.retry_delay,
            expires=None if lasting is None else now + lasting,
            hops=hops,
            recorded=recorded,
            ask=ask,
            root=root,
        )
        return SendTask(envelope, key, schedule_id)

    async def mail(
        self,
        user_id: str,
        sender: str,
        to: str,
        subject: str,
        body: str,
        *,
        priority: str = "normal",
        thread_id: str | None = None,
        reply_to: str | None = None,
        expires_in: float | None = None,
        key: str | None = None,
        hops: int = 0,
        known: bool = False,
        root: str = "",
    ) -> SendMail:
        """Compose a mail. `known`: the recipient has written to the sender before, so the sender may reply."""
        checks.name(subject, "the subject")
        checks.text(body, "the body", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        address = addresses.parse(to, user_id)
        now, mail_id = self._context.host.clock.now(), self._context.host.new_id("mail")
        expires = None if expires_in is None else now + checks.some_time(expires_in, "expires_in")
        envelope, check_by = None, None
        if not address.is_agent:
            if address.user_id != user_id and not known:
                raise NotFound(f"there is no {address.text!r} you may write to")
        else:
            config = await self._reach(user_id, address, known=known, exact=True)
            wakes = level.level >= config.wake_on_priority.level
            check_by = None if wakes else now + config.check_mail_interval
            envelope = Envelope(
                mail_id,
                address.key,
                Kind.MAIL,
                f"mail:{thread_id or mail_id}",
                level,
                sender,
                mail_id,
                now,
                rank(now, level),
                due=now if wakes else now + config.check_mail_interval,
                most_attempts=config.max_attempts,
                retry_delay=config.retry_delay,
                expires=expires,
                hops=hops,
                root=root,
            )
        return SendMail(
            mail_id,
            thread_id,
            sender,
            address.text,
            subject,
            body,
            level,
            now,
            expires,
            reply_to,
            key,
            envelope,
            check_by,
            hops,
            root,
        )

    def event(
        self,
        user_id: str,
        publisher: str,
        name: str,
        data: Any = None,
        *,
        priority: str = "normal",
        optional: bool = False,
        hops: int = 0,
        root: str = "",
    ) -> Publish:
        patterns.check_name(name)
        level = checks.choice(priority, "the priority", Priority)
        kept = checks.data(data, "the data of the event")
        return Publish(
            self._context.host.new_id("event"),
            user_id,
            name,
            kept,
            level,
            publisher,
            self._context.host.clock.now(),
            hops,
            optional,
            root,
        )

    async def broadcast(
        self,
        user_id: str,
        sender: str,
        text: str,
        audience: Audience,
        *,
        priority: str = "normal",
        hops: int = 0,
        root: str = "",
    ) -> Broadcast:
        """Compose a message to all agents of the owner in the audience, except the sender; each once."""
        checks.text(text, "the message", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if audience.profile is not None:
            self._context.brains.profile(audience.profile)
        reached = await self.recipients.find(user_id, audience, sender)
        now, name = self._context.host.clock.now(), self._context.host.new_id("env")
        depths = await self.recipients.depths(reached)
        ranked, lane = rank(now, level), f"from:{sender}"
        envelopes: list[Envelope] = []
        crowded: list[Envelope] = []
        find = self._agents.awake
        for key, config in reached:
            awake = find(key)
            envelope = Envelope(
                f"{name}:{key.rpartition('/')[2]}",
                key,
                Kind.TASK,
                lane,
                level,
                sender,
                text,
                now,
                ranked,
                0.0,
                1,
                config.max_attempts,
                config.retry_delay,
                None if config.task_expiry is None else now + config.task_expiry,
                hops,
                root=root,
            )
            is_full = awake.is_full if awake is not None else depths.get(key, 0) >= config.inbox_limit
            (crowded if is_full else envelopes).append(envelope)
        return Broadcast(name, sender, tuple(envelopes), tuple(crowded))

    async def call(
        self,
        user_id: str,
        caller: str,
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
        key: str | None = None,
        hops: int = 0,
        root: str = "",
    ) -> WriteEntry:
        """Compose the call of a meeting. Raises NotFound for an unknown participant."""
        limits, now = self._context.limits, self._context.host.clock.now()
        if await self._context.store.read(registry.count_called, caller) >= limits.meetings_at_once:
            raise LimitReached(
                f"{caller} has called {limits.meetings_at_once:,} meetings that are not over: end some first"
            )
        required_in_full, optional_in_full = (
            await self._all_invitable(user_id, required, "required"),
            await self._all_invitable(user_id, optional, "optional"),
        )
        latest = milliseconds(now + checks.seconds(deadline, "the deadline"))
        bounds = Bounds(
            participants=limits.meeting_participants,
            words=limits.meeting_words if max_words is None else max_words,
            moves=max_moves,
            turn=milliseconds(checks.seconds(turn_timeout, "turn_timeout")),
            misses=max_misses,
        )
        host = self._context.host
        if key is not None:
            checks.name(key, "the key")
        body = Called(
            topic,
            latest,
            required_in_full,
            optional_in_full,
            checks.choice(floor, "the floor rule", FloorRule),
            _moderator(moderator, user_id, (caller, *required_in_full, *optional_in_full)),
            game,
            _with_full_addresses(setting, user_id),
            open,
            bounds,
        )
        meeting_id = host.new_id("meeting")
        entry = check(Entry(meeting_id, caller, 1, Stamp(milliseconds(now)), {}, body))
        if (refused := decisions.may(View(meeting_id, caller), entry)) is not None:
            raise Forbidden(addresses.shortened(refused, user_id))
        level = checks.choice(priority, "the priority", Priority)
        return WriteEntry(host.new_id("entry"), caller, meeting_id, body, hops, root, level, key)

    async def invitable(self, user_id: str, who: str) -> str:
        """Return the full address of a participant that this user may invite: own and shared agents, as with mail."""
        address = addresses.parse(who, user_id)
        if address.is_agent:
            await self._reach(user_id, address)
        elif address.user_id != user_id:
            raise NotFound(f"there is no {address.text!r} you may invite")
        return address.text

    async def _all_invitable(self, user_id: str, addressed: Sequence[str], what: str) -> tuple[str, ...]:
        if isinstance(addressed, str) or not isinstance(addressed, list | tuple):
            raise Invalid(f"`{what}` must be a list of addresses, not {checks.shown(addressed)}")
        return tuple([await self.invitable(user_id, address) for address in addressed])

    async def _reach(self, user_id: str, address: Address, *, known: bool = False, exact: bool = False) -> AgentConfig:
        """Return the settings of a recipient. Raises NotFound, or LimitReached if its inbox is full.

        `exact`: count in the store, which includes mail that waits for its time.
        """
        awake = None if exact else self._agents.awake(address.key)
        if awake is not None:
            config, is_full = awake.config, awake.is_full
            if address.user_id != user_id and not config.shared and not known:
                raise addresses.unknown(address.agent_id)
        else:
            config, depth = await self._context.store.read(agents.recipient, user_id, address.key, known)
            is_full = depth >= config.inbox_limit
        if is_full:
            raise LimitReached(
                f"the inbox of the agent {address.agent_id!r} is full ({config.inbox_limit:,}): try again later"
            )
        return config


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


def _agent(to: object, user_id: str) -> Address:
    address = addresses.parse(to, user_id)
    if not address.is_agent:
        raise Invalid(f"{address.text!r:.80} is a person: tasks go to agents; write mail to people")
    return address
