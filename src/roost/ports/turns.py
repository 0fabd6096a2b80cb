"""A turn: what a brain is given, and what it can do with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from roost.core import wake
from roost.core.audience import Audience, audience
from roost.core.diary import Entry, Scope
from roost.core.meetings.bodies import Body
from roost.core.memories import RECALLED, Memory
from roost.core.messages import Message
from roost.core.usage import Usage
from roost.errors import Invalid
from roost.ports.attending import Meeting
from roost.ports.profiles import Profile
from roost.ports.tools import STEP_KEY, Tool


class Diary(Protocol):
    """What a brain notes for itself of one talk, or of one lane of an agent. Used on the turn's loop.

    What is added and set here is written when the turn ends, in one transaction with its answer: whole or not at all.
    A turn that is to be repeated writes nothing, nor does one whose answer is withdrawn.
    """

    name: str
    """Of the talk or lane: unique, and the same for all its turns."""

    async def read(self, app: str, limit: int) -> tuple[list[Entry], dict[Scope, dict[str, str]]]:
        """The newest entries, in the order of their turns, and all values of the app's, as JSON."""
        ...

    def add(self, item: str, seqs: Sequence[int] = (), said: Collection[str] = ()) -> None:
        """Another item, as JSON, of the entry of this turn; with it, messages that were taken in.

        Secrets are hidden in it, but for texts that were `said`: those are in the talk too, and stay as they are.
        """
        ...

    def set(self, scope: Scope, name: str, value: str) -> None:
        """A value, as JSON, in place of the one that is there."""
        ...


@dataclass(slots=True)
class ModelCall:
    """One question to a model. If it has an answer on record, that is used and the model is not asked."""

    recorded: Any = None
    response: Any = None
    """Set by whoever has asked the model: what JSON can hold."""


class Acts(Protocol):
    """What a turn can do to the world."""

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str: ...

    async def send(self, to: str, text: str, **options: Any) -> None: ...

    async def broadcast(self, text: str, whom: Audience, priority: str) -> int: ...

    async def publish(self, name: str, data: Any, **options: Any) -> str: ...

    def sleep(
        self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None, /
    ) -> None: ...

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str: ...

    async def call_meeting(self, topic: str, **options: Any) -> str: ...

    async def write_entry(self, meeting: Meeting, body: Body) -> None: ...

    async def remember(self, text: str, key: str | None) -> str: ...

    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]: ...

    async def forget(self, key: str) -> bool: ...

    async def step(
        self, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any: ...  # fmt: skip

    @property
    def tools(self) -> Sequence[Tool]: ...

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], call_id: str) -> str: ...

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]: ...


class Hand(Protocol):
    """What a turn can do while it lasts; the runner's side of it."""

    @property
    def stopping(self) -> bool: ...

    @property
    def means(self) -> Acts: ...

    @property
    def diary(self) -> Diary: ...

    def take_steering(self) -> tuple[Message, ...]: ...

    def spend(self, usage: Usage) -> None: ...

    def allowance(self) -> int | None: ...

    async def pause(self, tries: int, at_least: float) -> None: ...


@dataclass(slots=True)
class Turn:
    """What a runner hands to a brain: what is new, what was before, and the means to act."""

    kind: str
    text: str
    messages: tuple[Message, ...]
    history: Sequence[Message]
    profile: Profile
    user_id: str
    talk_session_id: str
    run_id: str
    state: dict[str, Any] = field(default_factory=dict)
    """Kept with the agent, or with the talk; what JSON can hold. Written when the turn settles."""
    _hand: Hand | None = None
    agent_id: str | None = None
    """Which agent this is, if it is one."""
    sender: str = ""
    """The address of whoever sent what is new."""
    subject: str = ""
    """Of mail."""
    data: Any = None
    """Of an event."""
    attempt: int = 1
    """How often this was tried, this time included."""
    meeting: Meeting = field(default=None)  # type: ignore[assignment]  # only a turn in a meeting has one
    """The meeting that this turn takes part in, to look at and to act in."""

    @property
    def stopping(self) -> bool:
        """Whether the run was asked to stop; a blocking brain looks at it between its steps."""
        return self._hand is not None and self._hand.stopping

    def steered(self) -> tuple[Message, ...]:
        """What the person said meanwhile with busy="steer"; what is yielded next answers it in a new message."""
        taken = self._hand.take_steering() if self._hand is not None else ()
        self.messages += taken
        return taken

    def spend(self, usage: Usage) -> None:
        """Say what a call of a model has cost: it is kept with the run, and counts towards the profile's limits."""
        if self._hand is not None:
            self._hand.spend(usage)

    def allowance(self) -> int | None:
        """How many tokens this run may still use; None: any number. Raises BrainFailed when there are none left."""
        return self._hand.allowance() if self._hand is not None else None

    async def pause(self, tries: int, *, at_least: float = 0.0) -> None:
        """Wait before something is tried again: longer each time, and never just as long as others do."""
        if self._hand is not None:
            await self._hand.pause(tries, at_least)

    @property
    def diary(self) -> Diary:
        """Where a brain that keeps a context of its own does so."""
        return self._hands.diary

    async def mail(self, to: str, subject: str, body: str, *, priority: str = "normal") -> str:
        """Write to a person or an agent; the mail's id. It leaves when the turn ends, or in a moment if it does not."""
        return await self._acts.mail(to, subject, body, priority=priority)

    async def send(self, to: str, text: str, *, priority: str = "normal") -> None:
        """Tell an agent something; what one agent sends to another is handled in the order of sending."""
        await self._acts.send(to, text, priority=priority)

    async def ask(self, to: str, text: str, *, deadline: float = 60.0, priority: str = "normal") -> str:
        """Ask an agent and wait for what it says; NoAnswer after so many seconds, or if it fails.

        An answer that comes later is delivered as a message that says so. Meanwhile the agent does other things.
        """
        return await self._acts.ask(to, text, deadline, priority)

    async def broadcast(
        self, text: str, *, group: str | None = None, profile: str | None = None, ids: str | None = None,
        state: str | None = None, priority: str = "normal",
    ) -> int:  # fmt: skip
        """Tell all other agents of the same owner, or those to whom all of this applies; how many it goes to.

        In order with what is sent to each of them. In `ids` a `*` stands for any characters.
        """
        return await self._acts.broadcast(text, audience(group, profile, ids, state), priority)

    async def publish(
        self, name: str, data: Any = None, *, priority: str = "normal", optional: bool = False
    ) -> str:  # fmt: skip
        """Tell whoever subscribed; the event's id. With `optional` it does not matter if nobody has."""
        return await self._acts.publish(name, data, priority=priority, optional=optional)

    async def call_meeting(
        self, topic: str, *, required: Sequence[str] = (), optional: Sequence[str] = (), floor: str = "free",
        moderator: str | None = None, game: str | None = None, setting: Any = None, deadline: float = 60.0,
        open: bool = False, max_words: int | None = None, max_moves: int = 100, turn_timeout: float = 300.0,
        max_misses: int = 2, priority: str = "normal",
    ) -> str:  # fmt: skip
        """Call a meeting as its creator; its id. It begins when all who are required have come, or fails.

        `deadline`: seconds in which they must. What is said there comes in turns of their own.
        """
        return await self._acts.call_meeting(
            topic, required=required, optional=optional, floor=floor, moderator=moderator, game=game, setting=setting,
            deadline=deadline, open=open, max_words=max_words, max_moves=max_moves, turn_timeout=turn_timeout,
            max_misses=max_misses, priority=priority,
        )  # fmt: skip

    async def sleep(
        self, seconds: float | None = None, *, until: datetime | float | None = None,
        wake_on: wake.Condition | None = None,
    ) -> None:  # fmt: skip
        """Sleep when this turn has ended: for so long, until then, or until what is waited for."""
        self._acts.sleep(seconds, until, wake_on)

    async def step(
        self, name: str, act: Callable[..., Any], *args: Any, check: Callable[[str], Any] | None = None, **options: Any
    ) -> Any:  # fmt: skip
        """Do something outside once: its result is on record, and a repeated turn is given that instead.

        If the program ended in the middle of it, `check` is asked, given `turn.step_key`: it gives the result, or None
        if it was not done. Without it a person is asked.
        """
        return await self._acts.step(name, act, args, options, check)

    @property
    def tools(self) -> Sequence[Tool]:
        """Those that may be called in this turn: what its profile allows."""
        return self._hand.means.tools if self._hand is not None else ()

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], *, call_id: str = "") -> str:
        """Call a tool as a step, and wait for a person's approval if it asks for one; its result as text.

        It is one of `turn.tools`, by its name, or one that the brain has itself.

        ToolFailed says in a way that a model can read why it was not called or has failed.
        """
        return await self._acts.call_tool(tool, arguments, call_id)

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]:
        """Around one question to a model, as a step: `async with turn.model_call(name, request) as call`.

        With `call.recorded` a repeated turn is given the response on record; else the model is asked, and
        `call.response` is set. Both are what JSON can hold, and so is the request, by which it is found again.
        """
        return self._acts.model_call(name, request)

    @property
    def step_key(self) -> str:
        """Inside of a tool or a step: its key, the same whenever the same turn is repeated, and of no other step."""
        return STEP_KEY.get()

    async def remember(self, text: str, *, key: str | None = None) -> str:
        """Have the agent remember this when the turn settles; its key, under which a newer text replaces it."""
        return await self._acts.remember(text, key)

    async def recall(self, query: str = "", *, limit: int = RECALLED) -> tuple[Memory, ...]:
        """What the agent remembers, with this turn's own: what has the most of the query first, then the newest.

        Any text is a query. An empty one gives the newest.
        """
        return await self._acts.recall(query, limit)

    async def forget(self, key: str) -> bool:
        """Have the agent forget what is under the key when the turn settles. False: nothing is."""
        return await self._acts.forget(key)

    @property
    def _acts(self) -> Acts:
        return self._hands.means

    @property
    def _hands(self) -> Hand:
        if self._hand is None:
            raise Invalid("this turn has no means to act: it is over, or was made by hand")
        return self._hand
