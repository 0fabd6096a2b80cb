"""Turns: the input of a brain, and the actions it can take."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from roost.core.agents import wake
from roost.core.agents.audience import Audience, audience
from roost.core.brain_data.memories import RECALLED, Memory
from roost.core.envelopes.late_answers import LateAnswer
from roost.core.limits.usage import Usage
from roost.core.meetings.log.bodies import Body
from roost.core.meetings.view.shown import MeetingSummary
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message
from roost.errors import Invalid
from roost.ports.attachments import TurnAttachment
from roost.ports.awaited import CreatedCoroutines, tracked
from roost.ports.brain_context import BrainContext
from roost.ports.meeting import Meeting
from roost.ports.profiles import Profile
from roost.ports.tools import STEP_KEY, Tool, TurnParameter


@runtime_checkable
class LongHistory(Protocol):
    """History that reads older messages when they are needed."""

    def count_of(self, sender: str) -> int:
        """Return the number of messages of a sender without reading them."""
        ...


@dataclass(slots=True)
class ModelCall:
    """Call of a model. If a response is recorded, it is used and the model is not called."""

    recorded: Any = None
    response: Any = None
    """Response of the model as a JSON value; set by the caller."""


class Actions(Protocol):
    """Actions of a turn; implemented by the runtime."""

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str: ...

    async def send(self, to: str, text: str, **options: Any) -> None: ...

    async def broadcast(self, text: str, audience: Audience, priority: str) -> int: ...

    async def publish(self, name: str, data: Any, **options: Any) -> str: ...

    def sleep(
        self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None, /
    ) -> None: ...

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str: ...

    async def call_meeting(self, topic: str, **options: Any) -> str: ...

    async def meetings(self) -> tuple[MeetingSummary, ...]: ...

    async def write_entry(self, meeting: Meeting, body: Body) -> None: ...

    async def remember(self, text: str, key: str | None) -> str: ...

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]: ...

    async def forget(self, key: str) -> bool: ...

    async def step(
        self,
        name: str,
        act: Callable[..., Any],
        args: tuple[Any, ...],
        options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any: ...

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], call_id: str) -> str: ...

    def tool_seconds(self, call_id: str) -> float | None: ...

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]: ...


class TurnRuntime(Protocol):
    """Services of a turn while it runs; implemented by the runtime."""

    @property
    def stopping(self) -> bool: ...

    @property
    def now(self) -> datetime: ...

    @property
    def actions(self) -> Actions: ...

    @property
    def brain_context(self) -> BrainContext: ...

    async def read_attachment(self, attachment_id: str) -> bytes: ...

    def take_steering(self) -> tuple[Message, ...]: ...

    def spend(self, usage: Usage) -> None: ...

    def allowance(self) -> int | None: ...

    async def pause(self, tries: int, at_least: float) -> None: ...

    async def off_loop(self, act: Callable[[], object], name: str = "", /) -> None:
        """Run a function on its own thread. If the turn is stopped meanwhile, the receipt names it."""
        ...


@dataclass(slots=True)
class Turn(TurnParameter):
    """Input of a brain: new messages, history, and the methods to act."""

    kind: str
    text: str
    messages: tuple[Message, ...]
    history: Sequence[Message]
    """Earlier messages, oldest first. In a long talk the newest are in RAM, and older ones are read by page when
    they are reached: reading from the end is quick, and `async for` does not block the loop."""
    profile: Profile
    user_id: str
    talk_session_id: str
    run_id: str
    state: dict[str, Any] = field(default_factory=dict)
    """State of the agent or the talk, as JSON values. Written when the turn settles."""
    _runtime: TurnRuntime | None = None
    agent_id: str | None = None
    """Id of the agent, if it is one."""
    senders: tuple[str, ...] = ()
    """Addresses of the senders of the new messages, each once, in order."""
    subject: str = ""
    """Subject of the mail."""
    data: Any = None
    """Data of the event."""
    attempt: int = 1
    """Number of this attempt, from 1."""
    meeting: Meeting = field(default=None)  # type: ignore[assignment]  # only a turn in a meeting has one
    """Meeting that this turn takes part in."""
    answer: LateAnswer = field(default=None)  # type: ignore[assignment]  # only a turn of the kind "answer" has one
    """Late answer of a turn of the kind `answer`, with its question; `text` is the answer."""
    _coroutines: CreatedCoroutines | None = field(default=None, repr=False, compare=False)
    """Coroutines that the brain has created, to detect those never awaited."""

    @property
    def sender(self) -> str:
        """Return the address of the sender of the new messages; empty if there are none.

        Raises Invalid in a meeting if there are several senders.
        """
        if len(self.senders) > 1:
            who = ", ".join(self.senders)
            raise Invalid(f"the turn has several senders: {who}; use the `sender` of each of `turn.messages`")
        return self.senders[0] if self.senders else ""

    @property
    def attachments(self) -> tuple[TurnAttachment, ...]:
        """Return the files of the new messages, in order."""
        return tuple(file for message in self.messages for file in self.attachments_of(message))

    def attachments_of(self, message: Message) -> tuple[TurnAttachment, ...]:
        """Return the files of a message of this turn or its history."""
        return tuple(map(self._opened, message.attachments))

    def _opened(self, attachment: Attachment) -> TurnAttachment:
        return TurnAttachment(attachment, self._read_attachment)

    async def _read_attachment(self, attachment_id: str) -> bytes:
        return await self._running.read_attachment(attachment_id)

    @property
    def stopping(self) -> bool:
        """Return whether the run was asked to stop; a blocking brain checks it between its steps."""
        return self._runtime is not None and self._runtime.stopping

    @property
    def now(self) -> datetime:
        """Return the time, in UTC: simulated in a simulation, the start of the run in a replay."""
        return self._running.now

    def steered(self) -> tuple[Message, ...]:
        """Return new messages of the user with busy="steer"; the next output answers them in a new message."""
        taken = self._runtime.take_steering() if self._runtime is not None else ()
        self.messages += taken
        return taken

    def spend(self, usage: Usage) -> None:
        """Report the usage of a model call: it is stored with the run and counts towards the profile's limits."""
        if self._runtime is not None:
            self._runtime.spend(usage)

    def allowance(self) -> int | None:
        """Return how many tokens this run may still use; None: no limit. Raises BrainFailed if there are none left."""
        return self._runtime.allowance() if self._runtime is not None else None

    @tracked
    async def pause(self, tries: int, *, at_least: float = 0.0) -> None:
        """Wait before a retry: longer after each attempt, with jitter."""
        if self._runtime is not None:
            await self._runtime.pause(tries, at_least)

    @property
    def brain_context(self) -> BrainContext:
        """Return the store for a brain that keeps a context of its own."""
        return self._running.brain_context

    @tracked
    async def mail(self, to: str, subject: str, body: str, *, priority: str = "normal") -> str:
        """Send mail to a user or an agent; return its id. It leaves when the turn ends, or soon if that is long."""
        return await self._acts.mail(to, subject, body, priority=priority)

    @tracked
    async def send(self, to: str, text: str, *, priority: str = "normal") -> None:
        """Send a message to an agent. Messages between two agents are handled in order."""
        await self._acts.send(to, text, priority=priority)

    @tracked
    async def ask(self, to: str, text: str, *, deadline: float = 60.0, priority: str = "normal") -> str:
        """Ask an agent and return its answer. Raises NoAnswer after `deadline` seconds, or if it fails.

        A later answer starts a turn of the kind `answer`. The agent handles other envelopes while it waits.
        """
        return await self._acts.ask(to, text, deadline, priority)

    @tracked
    async def broadcast(
        self,
        text: str,
        *,
        group: str | None = None,
        profile: str | None = None,
        ids: str | None = None,
        state: str | None = None,
        priority: str = "normal",
    ) -> int:
        """Send a message to all other agents of the owner, or to those that match; return their number.

        Each agent gets it in order with other messages. In `ids`, `*` matches any characters.
        """
        return await self._acts.broadcast(text, audience(group, profile, ids, state), priority)

    @tracked
    async def publish(self, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False) -> str:
        """Publish an event; return its id. Without subscribers it becomes a dead letter, unless `optional`."""
        return await self._acts.publish(name, data, priority=priority, optional=optional)

    @tracked
    async def call_meeting(
        self,
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
    ) -> str:
        """Call a meeting and return its id. It starts when all required participants have joined, or fails.

        `deadline`: seconds for them to join. What is said in it arrives in turns of their own.
        """
        return await self._acts.call_meeting(
            topic,
            required=required,
            optional=optional,
            floor=floor,
            moderator=moderator,
            game=game,
            setting=setting,
            deadline=deadline,
            open=open,
            max_words=max_words,
            max_moves=max_moves,
            turn_timeout=turn_timeout,
            max_misses=max_misses,
            priority=priority,
        )

    @tracked
    async def meetings(self) -> tuple[MeetingSummary, ...]:
        """Return the meetings that the agent is in, or invited to, and that are not over; the newest first."""
        return await self._acts.meetings()

    @tracked
    async def sleep(
        self,
        seconds: float | None = None,
        *,
        until: datetime | float | None = None,
        wake_on: wake.Condition | None = None,
    ) -> None:
        """Sleep after this turn: for some seconds, until a time, or until a wake condition is met."""
        self._acts.sleep(seconds, until, wake_on)

    @tracked
    async def step(
        self, name: str, act: Callable[..., Any], *args: Any, check: Callable[[str], Any] | None = None, **options: Any
    ) -> Any:
        """Execute an action outside of Roost once: its result is recorded, and a repeated turn reuses it.

        If the program ended during it, `check` is called with `turn.step_key` and returns the result, or None if it was
        not executed. Without `check`, a person is asked.
        """
        return await self._acts.step(name, act, args, options, check)

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the tools that the profile allows in this turn."""
        return self._runtime.actions.tools if self._runtime is not None else ()

    @tracked
    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], *, call_id: str = "") -> str:
        """Call a tool as a step, after an approval if it needs one; return its result as text.

        `tool` is the name of one of `turn.tools`, or a tool of the brain's own. The call and its result are shown with
        the answer. A brain that shows them itself passes a `call_id`, which also names the call for `tool_seconds`.

        Raises ToolFailed, with a reason that a model can read.
        """
        return await self._acts.call_tool(tool, arguments, call_id)

    def tool_seconds(self, call_id: str) -> float | None:
        """Return how long a call of `call_tool` took, without the wait for an approval; None if that is unknown.

        A repeated turn gets the recorded duration of a call that is not executed again.
        """
        return self._acts.tool_seconds(call_id)

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]:
        """Record a call of a model as a step: `async with turn.model_call(name, request) as call`.

        In a repeated turn `call.recorded` is the recorded response; otherwise call the model and set `call.response`.
        Both, and the request that matches them, are JSON values.
        """
        return self._acts.model_call(name, request)

    @property
    def step_key(self) -> str:
        """Return the idempotency key inside a tool or step: unique, and the same when the turn is repeated."""
        return STEP_KEY.get()

    @tracked
    async def remember(self, text: str, *, key: str | None = None) -> str:
        """Store a memory when the turn settles; return its key. A newer text under the key replaces it."""
        return await self._acts.remember(text, key)

    @tracked
    async def recall(self, query: str = "", *, limit: int = RECALLED) -> tuple[Memory, ...]:
        """Return memories of the agent, with those of this turn: best match first, then the newest.

        Any text is a query. An empty query returns the newest.
        """
        return await self._acts.recall(query, limit)

    @tracked
    async def forget(self, key: str) -> bool:
        """Delete the memory under the key when the turn settles. Return False if there is none."""
        return await self._acts.forget(key)

    @property
    def _acts(self) -> Actions:
        hand = self._runtime
        return self._running.actions if hand is None else hand.actions

    @property
    def _running(self) -> TurnRuntime:
        if self._runtime is None:
            raise Invalid("this turn cannot act: it is over, or was not created by Roost")
        return self._runtime
