"""Composer: validates, addresses and builds all effects, for users and for turns."""

from __future__ import annotations

from typing import Any

from roost.core.agents.audience import Audience
from roost.core.envelopes.effects import Broadcast, Publish, SendMail, SendTask
from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.envelopes.mail import Mail
from roost.core.envelopes.sender import SenderContext
from roost.core.values import addresses, checks, patterns
from roost.core.values.addresses import Address
from roost.core.values.priority import Priority, rank
from roost.errors import Invalid, NotFound
from roost.runtime.context import RuntimeContext
from roost.runtime.outgoing.meeting_calls import MeetingCalls
from roost.runtime.outgoing.recipients import Recipients
from roost.runtime.ports.active_agents import ActiveAgents


class Composer:
    """Builder of effects. Its coroutines await only the store, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, agents: ActiveAgents) -> None:
        self._context = context
        self._agents = agents
        self.recipients = Recipients(context, agents)
        self.meetings = MeetingCalls(context, self.recipients)

    async def task(
        self,
        sender: SenderContext,
        to: str,
        prompt: str,
        *,
        priority: str = "normal",
        key: str | None = None,
        expires_in: float | None = None,
        max_attempts: int | None = None,
        recorded: bool = True,
        lane: str | None = None,
        ask: str | None = None,
    ) -> SendTask:
        """Compose a task. Raises NotFound for an unknown agent, LimitReached if its inbox is full."""
        checks.text(prompt, "the task", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        address = _agent(to, sender.user_id)
        config = await self.recipients.reach(sender.user_id, address)
        attempts = (
            config.max_attempts
            if max_attempts is None
            else checks.count(max_attempts, "max_attempts", least=1, most=1_000)
        )
        now = self._context.host.clock.now()
        lasting = config.task_expiry if expires_in is None else checks.some_time(expires_in, "expires_in")
        envelope_id = self._context.host.new_id("task" if recorded else "env")
        envelope = Envelope(
            envelope_id,
            address.key,
            Kind.TASK,
            lane or envelope_id,
            level,
            sender.address,
            prompt,
            now,
            rank(now, level),
            most_attempts=attempts,
            retry_delay=config.retry_delay,
            expires=None if lasting is None else now + lasting,
            hops=sender.hops,
            recorded=recorded,
            ask=ask,
            root=sender.root,
        )
        return SendTask(envelope, key)

    async def mail(
        self,
        sender: SenderContext,
        to: str,
        subject: str,
        body: str,
        *,
        priority: str = "normal",
        expires_in: float | None = None,
        key: str | None = None,
        answers: Mail | None = None,
    ) -> SendMail:
        """Compose a mail. `answers`: the mail of the same thread that it replies to; its recipient may always reply."""
        checks.name(subject, "the subject")
        checks.text(body, "the body", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if key is not None:
            checks.name(key, "the key")
        user_id, address = sender.user_id, addresses.parse(to, sender.user_id)
        thread_id, is_known = None, False
        if answers is not None:
            thread_id, is_known = answers.thread_id, answers.recipient == sender.address
        now, mail_id = self._context.host.clock.now(), self._context.host.new_id("mail")
        expires = None if expires_in is None else now + checks.some_time(expires_in, "expires_in")
        envelope, check_by = None, None
        if not address.is_agent:
            if address.user_id != user_id and not is_known:
                raise NotFound(f"there is no {address.text!r} you may write to")
        else:
            config = await self.recipients.reach(user_id, address, known=is_known, exact=True)
            wakes = level.level >= config.wake_on_priority.level
            check_by = None if wakes else now + config.check_mail_interval
            envelope = Envelope(
                mail_id,
                address.key,
                Kind.MAIL,
                f"mail:{thread_id or mail_id}",
                level,
                sender.address,
                mail_id,
                now,
                rank(now, level),
                due=now if wakes else now + config.check_mail_interval,
                most_attempts=config.max_attempts,
                retry_delay=config.retry_delay,
                expires=expires,
                hops=sender.hops,
                root=sender.root,
            )
        return SendMail(
            mail_id,
            thread_id,
            sender.address,
            address.text,
            subject,
            body,
            level,
            now,
            expires,
            None if answers is None else answers.mail_id,
            key,
            envelope,
            check_by,
            sender.hops,
            sender.root,
        )

    def event(
        self, sender: SenderContext, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False
    ) -> Publish:
        patterns.check_name(name)
        level = checks.choice(priority, "the priority", Priority)
        kept = checks.data(data, "the data of the event")
        return Publish(
            self._context.host.new_id("event"),
            sender.user_id,
            name,
            kept,
            level,
            sender.address,
            self._context.host.clock.now(),
            sender.hops,
            optional,
            sender.root,
        )

    async def broadcast(
        self, sender: SenderContext, text: str, audience: Audience, *, priority: str = "normal"
    ) -> Broadcast:
        """Compose a message to all agents of the owner in the audience, except the sender; each once."""
        checks.text(text, "the message", most=self._context.limits.message_bytes)
        level = checks.choice(priority, "the priority", Priority)
        if audience.profile is not None:
            self._context.brains.profile(audience.profile)
        author = sender.address
        reached = await self.recipients.find(sender.user_id, audience, author)
        now, name = self._context.host.clock.now(), self._context.host.new_id("env")
        depths = await self.recipients.depths(reached)
        ranked, lane = rank(now, level), f"from:{author}"
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
                author,
                text,
                now,
                ranked,
                0.0,
                1,
                config.max_attempts,
                config.retry_delay,
                None if config.task_expiry is None else now + config.task_expiry,
                sender.hops,
                root=sender.root,
            )
            is_full = awake.is_full if awake is not None else depths.get(key, 0) >= config.inbox_limit
            (crowded if is_full else envelopes).append(envelope)
        return Broadcast(name, author, tuple(envelopes), tuple(crowded))


def _agent(to: object, user_id: str) -> Address:
    address = addresses.parse(to, user_id)
    if not address.is_agent:
        raise Invalid(f"{address.text!r:.80} is a person: tasks go to agents; write mail to people")
    return address
