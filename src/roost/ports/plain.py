"""Plain turns: the input of a blocking brain, with methods that block instead of coroutines."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from roost.core.envelopes.late_answers import LateAnswer
from roost.core.limits.usage import Usage
from roost.core.meetings.participants.attention import Why
from roost.core.meetings.view.view import Refused, View, Word
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message
from roost.ports.attachments import TurnAttachment
from roost.ports.brain_context import BrainContext
from roost.ports.meeting import Meeting
from roost.ports.profiles import Profile
from roost.ports.tools import Tool
from roost.ports.turns import ModelCall, Turn

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class TurnStopped(asyncio.CancelledError):
    """Raised in a blocking brain when its turn was stopped or is over. Do not catch it: the brain must end.

    It is not an `Exception`, so that `except Exception` does not catch it.
    """


class LoopCall(Protocol):
    """Run a coroutine on the loop of a turn and block this thread until it has ended."""

    def __call__(self, make: Callable[[], Coroutine[Any, Any, T]], /) -> T: ...


def plain(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]) -> Callable[Concatenate[Any, P], R]:
    """Return the blocking form of a coroutine method."""

    @functools.wraps(method)
    def call(self: Facade[Any], *args: P.args, **options: P.kwargs) -> R:
        return cast("R", self._call_on_loop(lambda: getattr(self._wrapped, method.__name__)(*args, **options)))

    return cast("Callable[Concatenate[Any, P], R]", call)


class Facade(Generic[T]):
    """Wrapper with blocking forms of coroutine methods. All other attributes are passed through."""

    __slots__ = ("_call_on_loop", "_wrapped")
    _wrapped: T
    _call_on_loop: LoopCall

    def __init__(self, wrapped: T, call_on_loop: LoopCall) -> None:
        object.__setattr__(self, "_wrapped", wrapped)
        object.__setattr__(self, "_call_on_loop", call_on_loop)

    if not TYPE_CHECKING:  # type checkers report names that are not declared below

        def __getattr__(self, name: str) -> Any:
            if name in Facade.__slots__:  # not set yet, as while copying
                raise AttributeError(name)
            return getattr(self._wrapped, name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(self._wrapped, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._wrapped!r})"


class PlainMeeting(Facade[Meeting]):
    """`turn.meeting` of a blocking brain."""

    __slots__ = ()

    me: str
    meeting_id: str
    new: tuple[Word, ...]
    refused: tuple[Refused, ...]
    why: Why | None
    view: View
    topic: str
    attendees: tuple[str, ...]
    present: tuple[str, ...]
    chair: str | None
    is_chair: bool
    may_speak: bool
    mover: str | None
    my_move: bool
    state: Any
    board: str
    asked: str
    earlier: tuple[Word, ...]
    prompt: str

    say = plain(Meeting.say)
    move = plain(Meeting.move)
    raise_hand = plain(Meeting.raise_hand)
    grant = plain(Meeting.grant)
    pass_turn = plain(Meeting.pass_turn)
    invite = plain(Meeting.invite)
    kick = plain(Meeting.kick)
    decline = plain(Meeting.decline)
    leave = plain(Meeting.leave)
    end = plain(Meeting.end)


class PlainBrainContext(Facade[BrainContext]):
    """`turn.brain_context` of a blocking brain."""

    __slots__ = ()

    name: str
    add: Callable[..., None]
    set: Callable[..., None]

    read = plain(BrainContext.read)


class PlainAttachment(Facade[TurnAttachment]):
    """File of a message in a turn of a blocking brain."""

    __slots__ = ()

    attachment: Attachment
    name: str
    media_type: str
    size: int
    is_image: bool
    is_text: bool

    read = plain(TurnAttachment.read)
    text = plain(TurnAttachment.text)


class PlainTurn(Facade[Turn]):
    """Turn of a blocking brain: the methods of `Turn`, each blocking its thread until it is done.

    Any thread but the loop's may use it. When the turn is stopped, a waiting method raises `TurnStopped` at once.
    """

    __slots__ = ()

    kind: str
    text: str
    messages: tuple[Message, ...]
    history: Sequence[Message]
    profile: Profile
    user_id: str
    talk_session_id: str
    run_id: str
    state: dict[str, Any]
    agent_id: str | None
    senders: tuple[str, ...]
    sender: str
    subject: str
    data: Any
    attempt: int
    answer: LateAnswer
    stopping: bool
    now: datetime
    tools: Sequence[Tool]
    step_key: str
    steered: Callable[[], tuple[Message, ...]]
    spend: Callable[[Usage], None]
    allowance: Callable[[], int | None]
    tool_seconds: Callable[[str], float | None]

    pause = plain(Turn.pause)
    mail = plain(Turn.mail)
    send = plain(Turn.send)
    ask = plain(Turn.ask)
    broadcast = plain(Turn.broadcast)
    publish = plain(Turn.publish)
    call_meeting = plain(Turn.call_meeting)
    meetings = plain(Turn.meetings)
    sleep = plain(Turn.sleep)
    call_tool = plain(Turn.call_tool)
    remember = plain(Turn.remember)
    recall = plain(Turn.recall)
    forget = plain(Turn.forget)

    @property
    def meeting(self) -> PlainMeeting:
        """Return the meeting that this turn takes part in; None in other turns."""
        meeting: Meeting | None = self._wrapped.meeting
        return PlainMeeting(meeting, self._call_on_loop) if meeting is not None else None  # type: ignore[return-value]

    @property
    def attachments(self) -> tuple[PlainAttachment, ...]:
        """Return the files of the new messages, in order."""
        return tuple(PlainAttachment(one, self._call_on_loop) for one in self._wrapped.attachments)

    def attachments_of(self, message: Message) -> tuple[PlainAttachment, ...]:
        """Return the files of a message of this turn or its history."""
        return tuple(PlainAttachment(one, self._call_on_loop) for one in self._wrapped.attachments_of(message))

    @property
    def brain_context(self) -> PlainBrainContext:
        return PlainBrainContext(self._wrapped.brain_context, self._call_on_loop)

    def step(
        self, name: str, act: Callable[..., Any], *args: Any, check: Callable[[str], Any] | None = None, **options: Any
    ) -> Any:
        """Execute a step as `Turn.step`, on its own thread, or on the loop if it is a coroutine."""
        return self._call_on_loop(lambda: self._wrapped.step(name, act, *args, check=check, **options))

    @contextmanager
    def model_call(self, name: str, request: Any) -> Iterator[ModelCall]:
        """Record a call of a model as `Turn.model_call`: `with turn.model_call(name, request) as call`."""
        around = self._wrapped.model_call(name, request)
        call = self._call_on_loop(lambda: _enter(around))
        try:
            yield call
        except BaseException as error:
            if not self._call_on_loop(functools.partial(_leave, around, error)):
                raise
        else:
            self._call_on_loop(lambda: _leave(around, None))


async def _enter(around: AbstractAsyncContextManager[ModelCall]) -> ModelCall:
    return await around.__aenter__()


async def _leave(around: AbstractAsyncContextManager[ModelCall], error: BaseException | None) -> bool | None:
    return await around.__aexit__(None if error is None else type(error), error, None)
