"""Actions of a turn: sends, questions, sleep, steps and tool calls.

What is sent goes through the turn's outbox, and leaves when the turn settles, or in a moment if it takes long.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from roost.core.agents import wake
from roost.core.agents.audience import Audience
from roost.core.envelopes.effects import Effect, Publish, SendTask, urgent_mail_id
from roost.core.envelopes.mail import Mail, answering
from roost.core.journal import contents
from roost.core.journal.steps import Attempt, Content, Recorded
from roost.core.limits.budgets import SECOND, Resource
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.log.bodies import Body, Invited, Said
from roost.core.meetings.log.stamps import milliseconds
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.memory.memories import Memory
from roost.core.values import addresses, checks
from roost.core.values.priority import Priority
from roost.errors import BrainFailed, Invalid, RoostError
from roost.ports import ModelCall, Tool
from roost.runtime.journal.approval_wait import ApprovalWait
from roost.runtime.journal.journal import Journal
from roost.runtime.journal.steps import Steps
from roost.runtime.journal.tool_calls import ToolCalls
from roost.runtime.outgoing.outbox import Outbox, as_recorded_error
from roost.runtime.outgoing.questions import Questions
from roost.runtime.turns.memory_buffer import MemoryBuffer
from roost.runtime.turns.services import TurnServices
from roost.stores.sql.meetings import registry

if TYPE_CHECKING:
    from roost.ports import Meeting
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.turns.meeting import MeetingVoice

E = TypeVar("E", bound=Effect)
F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


def seen(method: F) -> F:
    """Keep what it gives, or why it refuses, for a replay; in the order of asking, which may not be that of answers."""

    @functools.wraps(method)
    async def call(self: TurnActions, *args: Any, **options: Any) -> Any:
        kept = self.seen.setdefault(method.__name__, [])
        place = len(kept)
        kept.append(None)
        try:
            kept[place] = given = await method(self, *args, **options)
        except RoostError as error:
            kept[place] = {"refused": as_recorded_error(error)}
            raise
        return given

    return cast("F", call)


class TurnActions:
    """Belongs to one try of one envelope; used on its loop."""

    _notes: MemoryBuffer | None = None
    """What it remembers, made when it first does; on record with its settle, and never before."""

    def __init__(
        self,
        services: TurnServices,
        execution: TurnExecution,
        *,
        place: Attempt,
        user_id: str,
        sender: str,
        hops: int = 0,
        recorded: tuple[Recorded, ...] = (),
        default_wake: wake.Condition | None = None,
        root: str = "",
    ) -> None:
        self._services = services
        self._context = services.context
        self._composer = services.composer
        self._execution = execution
        self._user_id = self.owner = user_id
        """In whose name it acts."""
        self._sender = self.address = sender
        self._hops = hops + 1
        self._place = place
        self.at_hand = None if place.is_talk else place.envelope_id
        """What an agent handles."""
        self._recorded = recorded
        self._default_wake = default_wake
        self._root = root
        """Id of the origin of this turn, passed on with all its sends."""
        self.asleep: wake.Condition | None = None
        self.published: list[str] = []
        """Events of its own."""
        self.has_spoken = False
        """True if it has written into a meeting before its end."""
        self.seen: dict[str, list[Any]] = {}
        """What the turn was given in answer to what it did, in order, for a replay. `sends` have their numbers."""
        self._outbox = Outbox(
            services.context, services.notifier, execution, place, recorded, root, self.seen, self._next_step
        )

    # --- sending ---------------------------------------------------------------------------------

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str:
        link = self.link(to, options.get("priority"))
        subject, body = self.clean(subject), self.clean(body)
        mail_id = await self._send(
            contents.mail(to, subject, body, options),
            lambda: self._composer.mail(self._user_id, self._sender, to, subject, body, **link, **options),
            lambda mail: mail.mail_id,
        )
        if options.get("priority") == Priority.URGENT:
            self.published.append(urgent_mail_id(mail_id))
        return mail_id

    async def answer(self, letter: Mail, text: str) -> None:
        """Reply to a letter with what was said about it; posted when the turn settles, and never before."""
        link = self.link(letter.sender, letter.priority)
        effect = await self._composer.mail(
            self._user_id,
            self._sender,
            letter.sender,
            answering(letter.subject),
            text,
            priority=letter.priority,
            thread_id=letter.thread_id,
            reply_to=letter.mail_id,
            known=True,
            **link,
        )
        self._outbox.add(effect)

    async def send(self, to: str, text: str, **options: Any) -> None:
        link, lane, text = self.link(), f"from:{self._sender}", self.clean(text)
        await self._send(
            contents.message(to, text, options),
            lambda: self._composer.task(
                self._user_id, self._sender, to, text, recorded=False, lane=lane, **link, **options
            ),
        )

    async def broadcast(self, text: str, audience: Audience, priority: str) -> int:
        link, text = self.link(), self.clean(text)
        reached = await self._send(
            contents.broadcast(audience, text, priority),
            lambda: self._composer.broadcast(self._user_id, self._sender, text, audience, priority=priority, **link),
            lambda broadcast: str(len(broadcast.envelopes)),
        )
        if self._is_counted:
            self._context.budgets.add(self._root, Resource.MESSAGES, int(reached))
        return int(reached)

    async def publish(self, name: str, data: Any, **options: Any) -> str:
        link, data = self.link(), self.clean(data)
        content = contents.event(name, data, options)

        async def make() -> Publish:
            event = self._composer.event(self._user_id, self._sender, name, data, **link, **options)
            content[2] = event.data  # the brain may change its own afterwards
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
        """Send what `make` returns unless it is on record; count it, if it is made, for the origin of all this."""
        if spends is Resource.MESSAGES and not self._is_counted:
            return self._outbox.send(content, make, name)

        async def counted() -> E:
            self._count(spends)
            return await make()

        return self._outbox.send(content, counted, name)

    @property
    def _is_counted(self) -> bool:
        """Return True if what it sends counts for its origin: the first turn of all may send any number."""
        return self._hops >= SECOND

    def _count(self, spends: Resource) -> None:
        if spends is Resource.MESSAGES:
            self._context.budgets.send(self._root)
        else:
            self._context.budgets.spend(self._root, spends)

    def unsent(self) -> tuple[Effect, ...]:
        """Return what is posted when the turn settles."""
        unsent = self._outbox.unsent()
        return unsent if self._notes is None else (*unsent, *self._notes.effects())

    async def finish(self) -> None:
        """Once the brain is over: what is being posted is posted before the turn settles."""
        await self._outbox.finish()

    def link(self, to: object = "", priority: object = "") -> dict[str, Any]:
        """Return what ties something that is sent to all that led to it. BrainFailed: that is a long chain."""
        self._check_hops(_ends_with_a_person(to, priority))
        return {"hops": self._hops, "root": self._root}

    def _check_hops(self, last: bool = False) -> None:
        """`last`: whatever this is, the chain does not go on by itself through it."""
        self._check_fence()
        most = self._context.limits.hops
        if self._hops > most and not last:
            raise BrainFailed(f"a chain of {most} messages, each of which led to the next, ends here", kind="hops")

    # --- meetings --------------------------------------------------------------------------------

    async def call_meeting(self, topic: str, **options: Any) -> str:
        link, topic = self.link(), self.clean(topic)
        return await self._send(
            contents.call(topic, options),
            lambda: self._composer.call(self._user_id, self._sender, topic, **link, **options),
            lambda called: called.meeting_id,
            spends=Resource.MEETINGS,
        )

    @seen
    async def meetings(self) -> tuple[MeetingSummary, ...]:
        self._check_fence()
        return await self._context.store.read(registry.attended, self._sender)

    async def write_entry(self, meeting: Meeting, body: Body) -> None:
        """What is on record is in the log, and not in the meeting as it was: there it is noted again."""
        self._check_hops()
        if isinstance(body, Said):
            body = replace(body, text=self.clean(body.text))

        async def note() -> None:
            if isinstance(body, Invited):
                await self._composer.invitable(self._user_id, body.who)
            meeting.note(body, self._now())

        async def make() -> WriteEntry:
            return self._entry(meeting, body)

        self.has_spoken = True
        await self._outbox.send(contents.entry(meeting.meeting_id, body), make, before=note)

    def speak(self, voice: MeetingVoice) -> None:
        """What the brain has said, when it is over; it leaves with the settle, and never before."""
        self._outbox.add(*(self._entry(voice.meeting, body) for body in voice.last(self._now())))

    def _entry(self, meeting: Meeting, body: Body) -> WriteEntry:
        entry_id = self._context.host.new_id("entry")
        return WriteEntry(entry_id, meeting.me, meeting.meeting_id, body, run=self._place.run_id)

    def _now(self) -> int:
        return milliseconds(self._context.host.clock.now())

    # --- sleeping --------------------------------------------------------------------------------

    def sleep(self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None) -> None:
        if self._default_wake is None:
            raise Invalid("only an agent can sleep: this turn is not one of an agent")
        now = self._context.host.clock.now()
        self.asleep = wake.wanted(now, seconds, until, wake_on, self._default_wake)
        self._execution.action_log.add(contents.sleep(seconds, until, wake_on))

    # --- asking ----------------------------------------------------------------------------------

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str:
        self._check_hops()
        text = self.clean(text)
        await self.journal.open()
        seconds = checks.seconds(deadline, "the deadline")
        key = addresses.parse(to, self._user_id).key
        return await self._questions.ask(to, key, text, seconds, priority, self._outbox, self._next_step)

    @cached_property
    def _questions(self) -> Questions:
        """Made when it is first asked for: most turns ask nobody."""
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
        return await self._composer.task(
            self._user_id,
            self._sender,
            to,
            text,
            recorded=False,
            hops=self._hops,
            priority=priority,
            root=self._root,
            ask=name,
        )

    def withdraw(self) -> None:
        """Cancel the questions whose answers are still waited for: the turn is over, and is not run again."""
        if "_questions" in self.__dict__:
            self._questions.withdraw()

    # --- remembering -----------------------------------------------------------------------------

    @seen
    async def remember(self, text: str, key: str | None) -> str:
        kept = await self._noted().remember(self.clean(text), key)
        self._execution.action_log.add(["remember", key, text])
        return kept

    @seen
    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        return await self._noted().recall(query, limit)

    @seen
    async def forget(self, key: str) -> bool:
        found = await self._noted().forget(key)
        self._execution.action_log.add(["forget", key])
        return found

    def _noted(self) -> MemoryBuffer:
        self._check_fence()
        if self._default_wake is None:
            raise Invalid("only an agent can remember: this turn is not one of an agent")
        if self._notes is None:
            address = self._sender.removeprefix("agent:")
            self._notes = MemoryBuffer(self._context, self._services.agents, address, self.at_hand)
        return self._notes

    # --- steps and tools -------------------------------------------------------------------------

    @cached_property
    def journal(self) -> Journal:
        """Made when it is first asked for: most turns have none."""
        return Journal(self._context, self._execution, self._place, self._recorded)

    def _next_step(self) -> int:
        return self.journal.next_number()

    @cached_property
    def _calls(self) -> ToolCalls:
        return ToolCalls(self._context, self._execution, self.journal, self._asking)

    @cached_property
    def _asking(self) -> ApprovalWait:
        return ApprovalWait(self._context, self._composer, self._execution, self.journal)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self._execution, self.journal, self._asking)

    @property
    def is_journaled(self) -> bool:
        """Return True if there are steps on record of what is handled."""
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
        return await self._calls.call(tool, arguments)

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]:
        self._check_fence()
        return self.journal.model_call(name, request)

    def clean(self, value: Any) -> Any:
        """Hide secrets that are known by their value in what leaves the turn."""
        return self._context.redactor.clean_value(value)

    def _check_fence(self) -> None:
        if self._execution.fenced:
            raise asyncio.CancelledError


def _ends_with_a_person(to: object, priority: object) -> bool:
    """People answer in their own time. Of urgent mail agents hear too, and may write some more."""
    return isinstance(to, str) and to.startswith("user:") and priority != Priority.URGENT
