"""The office: whatever is sent, by a person or by a turn, is checked, addressed and made ready here, and only here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from roost.core import addresses, checks, patterns
from roost.core.addresses import Address
from roost.core.agents import AgentConfig
from roost.core.audience import Audience
from roost.core.envelopes import Broadcast, Envelope, Kind, Publish, SendMail, SendTask
from roost.core.meetings.bodies import Bounds, Called, FloorRule
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.entries import Entry, check
from roost.core.meetings.stamps import Stamp, milliseconds
from roost.core.priority import Priority, rank
from roost.errors import Invalid, LimitReached, NotFound
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall


PAGE = 1_000
"""Agents that are looked through together."""
FRESH = 1.0
"""Seconds for which it is known whom a broadcast reaches: whoever tells many often tells them again."""
KEPT = 100
"""Audiences that are known at a time."""
_Reached = list[tuple[str, AgentConfig]]
"""The keys of agents, and how they are configured."""


class Office:
    """Coroutines that wait for nothing but the store; plain threads can drive them."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self.hall = hall
        self._audiences: dict[tuple[str, str, Audience], tuple[float, _Reached]] = {}
        """Whom somebody reaches with a broadcast, and until when that is known."""

    def forget_audiences(self) -> None:
        """There are other agents now, or they are configured otherwise."""
        self._audiences = {}

    async def task(
        self, user_id: str, sender: str, to: str, prompt: str, *, priority: str = "normal", key: str | None = None,
        expires_in: float | None = None, max_attempts: int | None = None, recorded: bool = True, hops: int = 0,
        lane: str | None = None, ask: str | None = None, schedule_id: str | None = None, task_id: str | None = None,
        root: str = "",
    ) -> SendTask:  # fmt: skip
        """Raises NotFound for who does not exist or may not be reached, LimitReached for a full inbox."""
        checks.text(prompt, "the task", most=self._shop.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        address = _agent(to, user_id)
        config = await self._reach(user_id, address)
        attempts = config.max_attempts if max_attempts is None else checks.count(
            max_attempts, "max_attempts", least=1, most=1_000
        )  # fmt: skip
        now = self._shop.host.clock.now()
        lasting = config.task_expiry if expires_in is None else checks.some_time(expires_in, "expires_in")
        envelope_id = task_id or self._shop.host.new_id("task" if recorded else "env")
        handed = self._handed(address.key, attempts)
        envelope = Envelope(
            envelope_id, address.key, Kind.TASK, lane or envelope_id, level, sender, prompt, now, rank(now, level),
            most_attempts=attempts, retry_delay=config.retry_delay, expires=None if lasting is None else now + lasting,
            hops=hops, recorded=recorded, ask=ask, attempts=int(handed), claimed=handed, root=root,
        )  # fmt: skip
        return SendTask(envelope, key, schedule_id)

    async def mail(
        self, user_id: str, sender: str, to: str, subject: str, body: str, *, priority: str = "normal",
        thread_id: str | None = None, reply_to: str | None = None, expires_in: float | None = None,
        key: str | None = None, hops: int = 0, known: bool = False, root: str = "",
    ) -> SendMail:  # fmt: skip
        """`known`: the recipient has written to the sender before, and may be answered whoever it is."""
        checks.name(subject, "the subject")
        checks.text(body, "the body", most=self._shop.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        address = addresses.parse(to, user_id)
        now, mail_id = self._shop.host.clock.now(), self._shop.host.new_id("mail")
        expires = None if expires_in is None else now + checks.some_time(expires_in, "expires_in")
        envelope, check_by = None, None
        if not address.is_agent:
            if address.user_id != user_id and not known:
                raise NotFound(f"there is no {address.text!r} to whom you may write")
        else:
            config = await self._reach(user_id, address, known=known, exact=True)
            wakes = level.level >= config.wake_on_priority.level
            check_by = None if wakes else now + config.check_mail_interval
            handed = wakes and self._handed(address.key, config.max_attempts)
            envelope = Envelope(
                mail_id, address.key, Kind.MAIL, f"mail:{thread_id or mail_id}", level, sender, mail_id, now,
                rank(now, level), due=now if wakes else now + config.check_mail_interval,
                most_attempts=config.max_attempts, retry_delay=config.retry_delay, expires=expires, hops=hops,
                attempts=int(handed), claimed=handed, root=root,
            )  # fmt: skip
        return SendMail(
            mail_id, thread_id, sender, address.text, subject, body, level, now, expires, reply_to, key, envelope,
            check_by, hops, root,
        )  # fmt: skip

    def event(
        self, user_id: str, publisher: str, name: str, data: Any = None, *, priority: str = "normal",
        optional: bool = False, hops: int = 0, root: str = "",
    ) -> Publish:  # fmt: skip
        patterns.check_name(name)
        level = checks.choice(priority, "the priority", Priority)
        kept = checks.data(data, "the data of the event")
        return Publish(
            self._shop.host.new_id("event"), user_id, name, kept, level, publisher, self._shop.host.clock.now(), hops,
            optional, root,
        )  # fmt: skip

    async def broadcast(
        self, user_id: str, sender: str, text: str, whom: Audience, *, priority: str = "normal", hops: int = 0,
        root: str = "",
    ) -> Broadcast:  # fmt: skip
        """To all of the owner's agents whom the audience admits, but the sender; each once."""
        checks.text(text, "the message", most=self._shop.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if whom.profile is not None:
            self._shop.brains.profile(whom.profile)
        reached = await self._audience(user_id, whom, sender)
        now, name = self._shop.host.clock.now(), self._shop.host.new_id("env")
        depths = await self._depths([key for key, _ in reached if not self.hall.is_awake(key)], reached)
        ranked, lane = rank(now, level), f"from:{sender}"
        envelopes: list[Envelope] = []
        crowded: list[Envelope] = []
        find = self.hall.awake
        for key, config in reached:
            awake = find(key)
            handed = awake is not None and config.max_attempts > 1 and awake.has_room(1)
            envelope = Envelope(
                f"{name}:{key.rpartition('/')[2]}", key, Kind.TASK, lane, level, sender, text, now, ranked, 0.0,
                int(handed), config.max_attempts, config.retry_delay,
                None if config.task_expiry is None else now + config.task_expiry, hops, claimed=handed, root=root,
            )  # fmt: skip
            depth = awake.depth if awake is not None else depths.get(key, 0)
            (envelopes if depth < config.inbox_limit else crowded).append(envelope)
        return Broadcast(name, sender, tuple(envelopes), tuple(crowded))

    async def _audience(self, user_id: str, whom: Audience, sender: str) -> _Reached:
        """LimitReached if they are more than may be reached at once."""
        name, audiences, now = (user_id, sender, whom), self._audiences, self._shop.host.clock.monotonic()
        until, reached = audiences.get(name, (0.0, []))
        if now < until:
            return reached
        reached, is_short = await self._look_up(user_id, whom, sender)
        if is_short and whom.state is None:
            if len(audiences) >= KEPT:
                audiences.clear()
            audiences[name] = (now + FRESH, reached)  # if agents have changed since, nobody looks there any more
        return reached

    async def _look_up(self, user_id: str, whom: Audience, sender: str) -> tuple[_Reached, bool]:
        """Whom it reaches, and whether few had to be looked at."""
        most, default = self._shop.limits.agents_per_broadcast, self._shop.brains.default
        reached: _Reached = []
        after: str | None = ""
        pages = 0
        while after is not None:
            pages += 1
            page = await self._shop.store.read(
                self._shop.statements.agents.audience, user_id, whom.group, PAGE, after, whom.state is not None
            )  # fmt: skip
            for agent_id, resting, config in page:
                key = f"{user_id}/{agent_id}"
                state = self.hall.state_of(key, resting)
                if sender != f"agent:{key}" and whom.admits(agent_id, config.groups, config.profile or default, state):
                    reached.append((key, config))
            if len(reached) > most:
                raise LimitReached(
                    f"a broadcast may go to {most:,} agents, and this one would go to more: name a group, a profile"
                    " or a pattern of ids"
                )
            after = page[-1][0] if len(page) == PAGE else None
        return reached, pages == 1

    async def _depths(self, keys: list[str], reached: _Reached) -> dict[str, int]:
        """How much waits for those who are not awake, as far as that matters."""
        if not keys:
            return {}
        most = max(config.inbox_limit for _, config in reached)
        return await self._shop.store.read(self._shop.statements.agents.depths, keys, most)

    async def call(
        self, user_id: str, caller: str, topic: str, *, required: Sequence[str] = (), optional: Sequence[str] = (),
        floor: str = "free", moderator: str | None = None, game: str | None = None, setting: Any = None,
        deadline: float = 60.0, open: bool = False, max_words: int | None = None, max_moves: int = 100,
        turn_timeout: float = 300.0, max_misses: int = 2, priority: str = "normal", key: str | None = None,
        hops: int = 0, root: str = "",
    ) -> WriteEntry:  # fmt: skip
        """Raises NotFound for whoever does not exist or may not be reached, Invalid for what no meeting can be."""
        limits, now = self._shop.limits, self._shop.host.clock.now()
        if await self._shop.store.read(self._shop.statements.meetings.under_way, caller) >= limits.meetings_at_once:
            raise LimitReached(
                f"{caller} has called {limits.meetings_at_once:,} meetings that are not over: end some first"
            )
        must, may = await self._guests(user_id, required, "required"), await self._guests(user_id, optional, "optional")
        latest = milliseconds(now + checks.seconds(deadline, "the deadline"))
        bounds = Bounds(
            words=limits.meeting_words if max_words is None else max_words, moves=max_moves,
            turn=milliseconds(checks.seconds(turn_timeout, "turn_timeout")), misses=max_misses,
        )  # fmt: skip
        host = self._shop.host
        if key is not None:
            checks.name(key, "the key")
        body = Called(
            topic, latest, must, may, checks.choice(floor, "the floor rule", FloorRule),
            None if moderator is None else addresses.parse(moderator, user_id).text, game,
            _in_full(setting, user_id), open, bounds,
        )  # fmt: skip
        meeting_id = host.new_id("meeting")
        check(Entry(meeting_id, caller, 1, Stamp(milliseconds(now)), {}, body))
        level = checks.choice(priority, "the priority", Priority)
        return WriteEntry(host.new_id("entry"), caller, meeting_id, body, hops, root, level, key)

    async def guest(self, user_id: str, who: str) -> str:
        """The address in full of somebody whom this user may invite: as with mail, one's own and those shared."""
        address = addresses.parse(who, user_id)
        if address.is_agent:
            await self._reach(user_id, address)
        elif address.user_id != user_id:
            raise NotFound(f"there is no {address.text!r} whom you may invite")
        return address.text

    async def _guests(self, user_id: str, those: Sequence[str], what: str) -> tuple[str, ...]:
        if isinstance(those, str) or not isinstance(those, list | tuple):
            raise Invalid(f"those {what} must be a list of addresses, not {checks.shown(those)}")
        return tuple([await self.guest(user_id, one) for one in those])

    def _handed(self, key: str, attempts: int) -> bool:
        """Whether it is posted as tried, since its agent is awake and is handed it at once.

        If it is not, for whatever reason, that costs it a try: who has only one is handed nothing so.
        """
        return attempts > 1 and self.hall.is_awake(key)

    async def _reach(
        self, user_id: str, address: Address, *, known: bool = False, exact: bool = False
    ) -> AgentConfig:  # fmt: skip
        """`exact`: also mail that waits for its time counts, of which one who is awake knows nothing."""
        awake = None if exact else self.hall.awake(address.key)
        if awake is not None:
            config, depth = awake.config, awake.depth
            if address.user_id != user_id and not config.shared and not known:
                raise addresses.unknown(address.agent_id)
        else:
            config, depth = await self._shop.store.read(self._shop.statements.agents.reach, user_id, address.key, known)
        if depth >= config.inbox_limit:
            raise LimitReached(
                f"the inbox of the agent {address.agent_id!r} is full ({config.inbox_limit:,}): try again when it has"
                " done some of it"
            )
        return config


def _in_full(setting: Any, user_id: str) -> Any:
    """The players of a game may be named as everywhere else."""
    players = setting.get("players") if isinstance(setting, dict) else None
    if not isinstance(players, list | tuple) or not all(isinstance(one, str) for one in players):
        return setting
    return {**setting, "players": [addresses.parse(one, user_id).text for one in players]}


def _agent(to: object, user_id: str) -> Address:
    address = addresses.parse(to, user_id)
    if not address.is_agent:
        raise Invalid(f"{address.text!r:.80} is a person: tasks go to agents; write mail to people")
    return address
