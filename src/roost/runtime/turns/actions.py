"""Actions of a turn. Sends go through its outbox, and leave when the turn settles, or soon if it takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from roost.core.agents import wake
from roost.core.agents.audience import Audience
from roost.core.brain_data.memories import Memory
from roost.core.envelopes.effects import Effect, Publish, SendTask, urgent_mail_id
from roost.core.envelopes.mail import Mail, answering
from roost.core.envelopes.sender import SenderContext
from roost.core.journal import contents
from roost.core.journal.steps import Attempt, Content, Recorded
from roost.core.limits.budgets import SECOND, Resource
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.log.bodies import Body, Invited, Said
from roost.core.meetings.log.stamps import milliseconds
from roost.core.meetings.options import MeetingOptions
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.errors import BrainFailed, Invalid
from roost.ports import ModelCall, Tool
from roost.runtime.journal.approval_wait import ApprovalWait
from roost.runtime.journal.journal import Journal
from roost.runtime.journal.steps import Steps
from roost.runtime.journal.tool_calls import ToolCalls
from roost.runtime.outgoing.outbox import Outbox
from roost.runtime.outgoing.questions import Questions
from roost.runtime.turns.memory_buffer import MemoryBuffer
from roost.runtime.turns.recorded_results import recorded_result
from roost.runtime.turns.services import TurnServices
from roost.stores.sql.meetings import registry

if TYPE_CHECKING:
    from roost.ports import Meeting
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.turns.meeting import MeetingOutput

E = TypeVar("E", bound=Effect)


class TurnActions:
    """Actions of one attempt of one envelope. Used on its loop."""

    _memory_buffer: MemoryBuffer | None = None
    """Changes of memories, created on the first use; stored when the turn settles."""

    def __init__(
        self,
        services: TurnServices,
        execution: TurnExecution,
        *,
        place: Attempt,
        sender: SenderContext,
        recorded: tuple[Recorded, ...] = (),
        default_wake: wake.Condition | None = None,
    ) -> None:
        self._services = services
        self._context = services.context
        self._composer = services.composer
        self._execution = execution
        self.sender = sender
        """The owner of the actions, and the agent or user that sends."""
        self._place = place
        self.handled_id = None if place.is_talk else place.envelope_id
        """Id of the envelope that an agent handles."""
        self._recorded = recorded
        self._default_wake = default_wake
        self.asleep: wake.Condition | None = None
        self.published: list[str] = []
        """Ids of events that this turn published."""
        self.has_spoken = False
        """True if the turn has written into a meeting before its end."""
        self.seen: dict[str, list[Any]] = {}
        """Results of the actions, in order, for a replay. `sends` have their numbers."""
        self._outbox = Outbox(
            services.context, services.notifier, execution, place, recorded, sender.root, self.seen, self._next_step
        )

    # --- sending ---------------------------------------------------------------------------------

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str:
        self.check_hops(to, options.get("priority"))
        subject, body = self.clean(subject), self.clean(body)
        mail_id = await self._send(
            contents.mail(to, subject, body, options),
            lambda: self._composer.mail(self.sender, to, subject, body, **options),
            lambda mail: mail.mail_id,
        )
        if options.get("priority") == Priority.URGENT:
            self.published.append(urgent_mail_id(mail_id))
        return mail_id

    async def answer(self, mail: Mail, text: str) -> None:
        """Reply to a mail with the output of the brain; posted when the turn settles."""
        self.check_hops(mail.sender, mail.priority)
        effect = await self._composer.mail(
            self.sender, mail.sender, answering(mail.subject), text, priority=mail.priority, answers=mail
        )
        self._outbox.add(effect)

    async def send(self, to: str, text: str, **options: Any) -> None:
        self.check_hops()
        text, sender = self.clean(text), self.sender
        await self._send(
            contents.message(to, text, options),
            lambda: self._composer.task(sender, to, text, recorded=False, lane=f"from:{sender.address}", **options),
        )

    async def broadcast(self, text: str, audience: Audience, priority: str) -> int:
        self.check_hops()
        text = self.clean(text)
        reached = await self._send(
            contents.broadcast(audience, text, priority),
            lambda: self._composer.broadcast(self.sender, text, audience, priority=priority),
            lambda broadcast: str(len(broadcast.envelopes)),
        )
        if self._is_counted:
            self._context.budgets.add(self.sender.root, Resource.MESSAGES, int(reached))
        return int(reached)

    async def publish(self, name: str, data: Any, **options: Any) -> str:
        self.check_hops()
        data = self.clean(data)
        content = contents.event(name, data, options)

        async def make() -> Publish:
            event = self._composer.event(self.sender, name, data, **options)
            content[2] = event.data  # the brain may change its own object afterwards
            return event

        event_id = await self._send(content, make, lambda event: event.event_id)
        self.published.append(event_id)
        return event_id

    def _send(
        self,
        content: Content,
        make: Callable[[], Awaitable[E]],
        name: Callable[[E], str] | None = None,
        *,
        spends: Resource = Resource.MESSAGES,
    ) -> Awaitable[str]:
        """Send the result of `make`, unless it is recorded; a new send is counted for the origin."""
        if spends is Resource.MESSAGES and not self._is_counted:
            return self._outbox.send(content, make, name)

        async def counted() -> E:
            self._count(spends)
            return await make()

        return self._outbox.send(content, counted, name)

    @property
    def _is_counted(self) -> bool:
        """Return True if sends count for the origin: the first turn of a chain may send any number."""
        return self.sender.hops >= SECOND

    def _count(self, spends: Resource) -> None:
        if spends is Resource.MESSAGES:
            self._context.budgets.send(self.sender.root)
        else:
            self._context.budgets.spend(self.sender.root, spends)

    def unsent(self) -> tuple[Effect, ...]:
        """Return the effects to post when the turn settles."""
        unsent = self._outbox.unsent()
        return unsent if self._memory_buffer is None else (*unsent, *self._memory_buffer.effects())

    async def finish(self) -> None:
        """Wait for the post in progress, after the brain has ended."""
        await self._outbox.finish()

    def check_hops(self, to: object = "", priority: object = "") -> None:
        """Raise BrainFailed if the chain is too long, unless it ends with this send."""
        self._check_fence()
        most = self._context.limits.hops
        if self.sender.hops > most and not _is_last_hop(to, priority):
            raise BrainFailed(f"the chain of messages is longer than the limit of {most} hops", kind="hops")

    # --- meetings --------------------------------------------------------------------------------

    async def call_meeting(self, topic: str, **options: Any) -> str:
        self.check_hops()
        topic = self.clean(topic)
        return await self._send(
            contents.call(topic, options),
            lambda: self._composer.meetings.compose(self.sender, topic, MeetingOptions(**options)),
            lambda called: called.meeting_id,
            spends=Resource.MEETINGS,
        )

    @recorded_result
    async def meetings(self) -> tuple[MeetingSummary, ...]:
        self._check_fence()
        return await self._context.store.read(registry.open_meetings, self.sender.address)

    async def write_entry(self, meeting: Meeting, body: Body) -> None:
        """Write an entry into a meeting.

        A recorded entry is in the log, and is applied to the view of this turn again.
        """
        self.check_hops()
        if isinstance(body, Said):
            body = replace(body, text=self.clean(body.text))

        async def note() -> None:
            if isinstance(body, Invited):
                await self._composer.recipients.invitable(self.sender.user_id, body.who)
            meeting.note(body, self._now())

        async def make() -> WriteEntry:
            return self._entry(meeting, body)

        self.has_spoken = True
        await self._outbox.send(contents.entry(meeting.meeting_id, body), make, before=note)

    def add_last_entries(self, output: MeetingOutput) -> None:
        """Add the entries that follow from the final text of the brain; posted when the turn settles."""
        self._outbox.add(*(self._entry(output.meeting, body) for body in output.last(self._now())))

    def _entry(self, meeting: Meeting, body: Body) -> WriteEntry:
        entry_id = self._context.host.new_id("entry")
        return WriteEntry(entry_id, meeting.me, meeting.meeting_id, body, run=self._place.run_id)

    def _now(self) -> int:
        return milliseconds(self._context.host.clock.now())

    # --- sleeping --------------------------------------------------------------------------------

    def sleep(self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None) -> None:
        if self._default_wake is None:
            raise Invalid("only an agent can sleep, and this turn does not belong to one")
        now = self._context.host.clock.now()
        self.asleep = wake.wanted(now, seconds, until, wake_on, self._default_wake)
        self._execution.action_log.add(contents.sleep(seconds, until, wake_on))

    # --- asking ----------------------------------------------------------------------------------

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str:
        self.check_hops()
        text = self.clean(text)
        await self.journal.open()
        seconds = checks.seconds(deadline, "the deadline")
        key = addresses.parse(to, self.sender.user_id).key
        return await self._questions.ask(to, key, text, seconds, priority, self._outbox, self._next_step)

    @cached_property
    def _questions(self) -> Questions:
        """Return the questions of the turn; created on the first use."""
        return Questions(
            self._context,
            self._services.requests,
            self._services.notifier,
            self._execution,
            self._place,
            self._recorded,
            self.seen,
            self._question,
        )

    async def _question(self, to: str, text: str, priority: str, name: str) -> SendTask:
        if self._is_counted:
            self._count(Resource.MESSAGES)
        return await self._composer.task(self.sender, to, text, recorded=False, priority=priority, ask=name)

    def withdraw(self) -> None:
        """Cancel the open questions: the turn is over and is not repeated."""
        if "_questions" in self.__dict__:
            self._questions.withdraw()

    # --- remembering -----------------------------------------------------------------------------

    @recorded_result
    async def remember(self, text: str, key: str | None) -> str:
        kept = await self._memories().remember(self.clean(text), key)
        self._execution.action_log.add(["remember", key, text])
        return kept

    @recorded_result
    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        return await self._memories().recall(query, limit)

    @recorded_result
    async def forget(self, key: str) -> bool:
        found = await self._memories().forget(key)
        self._execution.action_log.add(["forget", key])
        return found

    def _memories(self) -> MemoryBuffer:
        self._check_fence()
        if self._default_wake is None:
            raise Invalid("only an agent can remember, and this turn does not belong to one")
        if self._memory_buffer is None:
            address = self.sender.address.removeprefix("agent:")
            self._memory_buffer = MemoryBuffer(self._context, self._services.agents, address, self.handled_id)
        return self._memory_buffer

    # --- steps and tools -------------------------------------------------------------------------

    @cached_property
    def journal(self) -> Journal:
        """Return the journal of the turn; created on the first use."""
        return Journal(self._context, self._execution, self._place, self._recorded)

    def _next_step(self) -> int:
        return self.journal.next_number()

    @cached_property
    def _calls(self) -> ToolCalls:
        return ToolCalls(self._context, self._execution, self.journal, self._approvals)

    @cached_property
    def _approvals(self) -> ApprovalWait:
        return ApprovalWait(self._context, self._composer, self._execution, self.journal)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self._execution, self.journal, self._approvals)

    @property
    def is_journaled(self) -> bool:
        """Return True if steps of the envelope are recorded."""
        return bool(self._recorded) or ("journal" in self.__dict__ and self.journal.is_used)

    async def step(
        self,
        name: str,
        act: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any:
        self._check_fence()
        return await self._steps.step(name, act, args, options, check)

    @property
    def tools(self) -> Sequence[Tool]:
        return self._calls.tools

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], call_id: str) -> str:
        self._check_fence()
        return await self._calls.call(tool, arguments, call_id)

    def tool_seconds(self, call_id: str) -> float | None:
        return self._calls.seconds.get(call_id)

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]:
        self._check_fence()
        return self.journal.model_call(name, request)

    def clean(self, value: Any) -> Any:
        """Redact secrets known by value in data that leaves the turn."""
        return self._context.redactor.clean_value(value)

    def _check_fence(self) -> None:
        if self._execution.fenced:
            raise asyncio.CancelledError


def _is_last_hop(to: object, priority: object) -> bool:
    """Return True for mail to a user: people reply in their own time. Urgent mail is also an event for agents."""
    return isinstance(to, str) and to.startswith("user:") and priority != Priority.URGENT
