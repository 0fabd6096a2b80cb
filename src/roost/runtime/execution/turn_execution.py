"""Execution of one brain over one turn, which can be stopped at any moment.

Subclasses settle it: `Run` for talks, `Work` for everything else that an agent handles.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import AsyncGeneratorType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Protocol

from roost.core.failures import faults, tracebacks
from roost.core.journal.action_log import Deeds
from roost.core.limits.budgets import Resource
from roost.core.limits.usage import NOTHING, Usage
from roost.core.runs import RunOutcome
from roost.core.talks.messages import at
from roost.core.talks.runs import Stop, StopReason
from roost.core.talks.side_channels import Channel
from roost.core.values.correlation import ROOT
from roost.core.values.ids import reference
from roost.core.values.secrets import RedactedStream
from roost.errors import BrainFailed
from roost.ports import Brain, Chunk, Loop, PlainTurn, Tracer, Turn
from roost.runtime.context import RuntimeContext
from roost.runtime.execution.await_check import check_awaited
from roost.runtime.execution.thread_bridge import ThreadBridge

if TYPE_CHECKING:
    from roost.runtime.limits.abandoned_threads import Thread

log = logging.getLogger("roost.run")

PRESSES = 3
"""How often a brain is cancelled before it is given up."""
FINAL = Channel.FINAL
_CHANNELS = frozenset(map(str, Channel))
PAUSE = 0.5
"""Seconds, about, before something is tried for the second time."""
BREATH = 0.002
"""Seconds after which a brain that never awaits lets other tasks run."""


class TaskOwner(Protocol):
    """An agent on whose loop a turn runs."""

    def orphan(self, task: asyncio.Task[Any]) -> None:
        """Note a task of a brain that ignores its cancellation."""


class TurnExecution(ABC):
    """`stop` is called on its loop, `fence` on any thread. Once fenced, nothing it says reaches anyone."""

    # Made by the ten thousand each second: what all begin with stands here.
    turn: Turn
    fenced = False
    why: StopReason | None = None
    error: BaseException | None = None
    acknowledged: float | None = None
    usage = NOTHING
    is_parked = False
    """True while it waits for a person: it may be ended, and is resumed by another run."""
    _task: asyncio.Task[None] | None = None
    """The task that the brain is iterated in, while it is."""
    _requested = 0.0
    _abandoned: tuple[str, ...] = ()
    _blocking = False
    _thread: Thread | None = None
    """The thread of a plain brain."""
    _crossing: ThreadBridge | None = None
    """Of a blocking brain: how its thread reaches this loop."""
    _presses = 0
    _limit: asyncio.Timeout | None = None
    _streams: dict[str, RedactedStream] | None = None
    """By channel, once there are secrets that may be said."""
    _stream: object = None
    """What the brain gave: its generator."""
    _left_over = 0.0
    _parks = 0
    _deeds: Deeds | None = None
    acts = 0
    """How much it does right now that must not be cut off, beside waiting for a person."""

    def __init__(self, context: RuntimeContext, loop: Loop, where: str, root: str) -> None:
        self._context = context
        self.loop = loop
        self._where = where
        self.root = root
        """The id of that with which it all began."""
        self._aloop = asyncio.get_running_loop()
        self.run_id = context.host.new_id("run")
        self._started = context.host.clock.now()

    # --- hooks of the subclasses -----------------------------------------------------------------

    @abstractmethod
    def _heard(self, text: str, channel: str) -> None:
        """The brain has said this."""

    def _silenced(self) -> None:  # noqa: B027 — most have nothing to see to
        """It was fenced."""

    def waits(self, waiting: bool) -> None:  # noqa: B027
        """It waits for an answer, or does not any more."""

    async def regain(self) -> None:  # noqa: B027
        """Wait until its agent has a place again, if it left it while all its turns waited."""

    def park(self, parked: bool) -> None:
        """It waits for a person, or does not any more."""
        self._parks += 1 if parked else -1
        self.is_parked = self._parks > 0
        self._hold(parked)
        self.waits(parked)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Around something that a person's leisure must not cut off."""
        self.acts += 1
        try:
            yield
        finally:
            self.acts -= 1

    @property
    def may_rest(self) -> bool:
        """Return True if it can be ended here, and taken up from its journal when a person has decided."""
        return self.is_parked and not self.acts and not self.fenced

    def rest(self) -> None:
        """A person takes their time: it is taken up from its journal when they have decided. On its loop."""
        if self.may_rest:
            self.stop(StopReason.WAIT, self._context.host.clock.now())

    def _hold(self, parked: bool) -> None:
        """The time in which a person is asked is not the brain's."""
        limit, now = self._limit, self._aloop.time()
        if limit is None:
            return
        if parked and (due := limit.when()) is not None:
            self._left_over = max(0.0, due - now)
            limit.reschedule(None)
        elif not self.is_parked and limit.when() is None:
            limit.reschedule(now + self._left_over)

    @abstractmethod
    def _left(self) -> None:
        """Release the callers that wait: it would not stop and was given up."""

    # --- thinking --------------------------------------------------------------------------------

    def _iterate(self) -> Coroutine[Any, Any, None]:
        return self._think() if self._context.tracer is None else self._traced(self._context.tracer)

    async def _traced(self, trace: Tracer) -> None:
        about = {"kind": str(self.turn.kind), "where": self._where, "run": self.run_id, "root": self.root}
        with trace(f"roost {self.turn.kind}", about) as span:
            try:
                await self._think()
            except BaseException as error:
                span["outcome"] = str(RunOutcome.STOPPED if self.fenced else RunOutcome.FAILED)
                if not self.fenced:
                    span["fault"] = str(faults.sort(error))
                raise
            span["outcome"] = str(RunOutcome.STOPPED if self.fenced else RunOutcome.DONE)

    async def _think(self) -> None:
        ROOT.set(self.root)
        try:
            profile = self.turn.profile
            brain = self._context.brains.loaded(profile) or await self._load()
            if profile.tools and self._context.tools.has_servers:
                await self._context.tools.prepare(profile)
            if profile.tokens_per_day is not None:
                await self._context.ledger.open(profile)
            if profile.seconds_per_run is None:
                await self._say_all(brain)
            else:
                await self._in_time(brain, profile.seconds_per_run)
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and is_discarded(self._task):
                raise
            if isinstance(error, asyncio.CancelledError) and (self.fenced or is_cancelled()):
                raise
            # Raised further it would end the worker's loop, and with it everybody's runs.
            raise BrainFailed(f"the brain raised {type(error).__name__}") from error
        finally:
            ROOT.set("")  # the task is reused

    async def _in_time(self, brain: Brain, seconds: float) -> None:
        self._limit = limit = asyncio.timeout(seconds)
        try:
            async with limit:
                await self._say_all(brain)
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise BrainFailed(f"it took longer than {seconds:g} seconds", kind=faults.Fault.TIME) from error
        finally:
            self._limit = None

    def _say_all(self, brain: Brain) -> Coroutine[Any, Any, None]:
        return self._in_thread(brain) if is_blocking(brain) else self._on_loop(brain)

    async def _on_loop(self, brain: Brain) -> None:
        self._stream = stream = brain(self.turn)
        if type(stream) is not AsyncGeneratorType and not isinstance(stream, AsyncIterator):
            raise BrainFailed(
                f"the brain {self.turn.profile.brain!r} gave {type(stream).__name__}: it must be a generator"
            )
        time = self._aloop.time
        turned = time()
        close = getattr(stream, "aclose", None)
        try:
            async for chunk in stream:
                if self.fenced:
                    break
                self._say(chunk)
                if time() - turned > BREATH:
                    await asyncio.sleep(0)
                    turned = time()
            if self.turn._made is not None or self.turn.meeting is not None:
                await check_awaited(self.turn)
        except GeneratorExit:
            if is_discarded(self._task):
                close = None  # nothing can be awaited any more
            raise
        finally:
            self.flush(end=True)
            if close is not None:
                await close()

    async def _load(self) -> Brain:
        """On a thread of its own: what a module does while it is imported must not hold up the loop."""
        found: list[Brain] = []
        await self.off_loop(lambda: found.append(self._context.brains.load(self.turn.profile)))
        return found[0]

    async def _in_thread(self, brain: Brain) -> None:
        self._blocking = True
        name = self.run_id if self._task is None else self._task.get_name()
        self._crossing = crossing = ThreadBridge(self._context.host, self.loop, name)
        if self.fenced:  # while it was made
            crossing.close()

        def speak() -> None:
            try:
                self._stream = stream = brain(PlainTurn(self.turn, crossing))  # type: ignore[arg-type]
                for chunk in stream:  # type: ignore[union-attr]
                    if self.fenced:
                        break
                    self._say(chunk)
            finally:
                self.flush(end=True)

        try:
            await self.off_loop(speak)
        finally:
            await crossing.finish(self.patience)

    async def off_loop(self, act: Callable[[], object], name: str = "") -> None:
        """Run it on a thread of its own, and raise what it raises.

        A thread cannot be killed: if this is cancelled meanwhile, it is left to itself, and `name` is in the receipt.
        """
        finished: asyncio.Future[None] = self._aloop.create_future()
        left = self._context.abandoned.thread()
        if not name:
            self._thread = left

        def finish(error: BaseException | None) -> None:
            if finished.done():
                return
            if error is None:
                finished.set_result(None)
            else:
                finished.set_exception(error)

        def guarded() -> None:
            error: BaseException | None = None
            try:
                act()
            except (asyncio.CancelledError, Exception) as raised:
                error = raised
                if isinstance(raised, StopIteration):  # no future can be given it
                    error = _caused(raised)
            except BaseException as raised:
                error = _caused(raised)
            left.returned()
            self.loop.call(finish, error)

        here = contextvars.copy_context()  # whose span, whose log
        thread = f"roost {name}" if name else f"roost-brain-{self.turn.profile.name}"
        self._context.host.run_blocking(thread, lambda: here.run(guarded))
        try:
            await finished
        except asyncio.CancelledError:
            if left.give_up() and name:
                self.leave_behind(name)
            raise

    def _say(self, chunk: str | Chunk) -> None:
        if self.fenced:
            return
        text, channel = (chunk, FINAL) if type(chunk) is str else _said(chunk, self._stream)
        if self._context.redactor.known is not None and channel != Channel.TOOLS:  # those are cleaned as JSON
            text = self._redacted(text, channel)
        self._hear(text, channel)

    def _redacted(self, text: str, channel: str) -> str:
        """Hide secrets that are known by their value, also if one comes in pieces."""
        if self._streams is None:
            self._streams = {}
        if channel not in self._streams:
            self._streams[channel] = RedactedStream(self._context.redactor)
        return self._streams[channel].feed(text)

    def flush(self, *, end: bool = False) -> None:
        """Say what was held back since it might be the beginning of a secret; all of it if the text ends here."""
        for channel, stream in (self._streams or {}).items():
            if (text := stream.end() if end else stream.flush()) and not self.fenced:
                self._hear(text, channel)

    def _hear(self, text: str, channel: str) -> None:
        self._heard(text, channel)
        if channel != FINAL:
            self.deeds.think(channel, text)

    @property
    def deeds(self) -> Deeds:
        """Return what it does, for the record of its run; made when it first does something.

        Not a cached property: those of Python 3.11 share one lock among all threads.
        """
        if self._deeds is None:
            self._deeds = Deeds()
        return self._deeds

    # --- what it costs ---------------------------------------------------------------------------

    def spend(self, usage: Usage) -> None:
        self.usage += usage
        self._context.ledger.add(self.turn.profile, usage)
        if usage.tokens:
            self._context.budgets.add(self.root, Resource.TOKENS, usage.tokens)

    def allowance(self) -> int | None:
        left = self._context.ledger.allowance(self.turn.profile, self.usage)
        of_origin = self._context.budgets.left(self.root, Resource.TOKENS)
        return of_origin if left is None else min(left, of_origin)

    async def pause(self, tries: int, at_least: float) -> None:
        await asyncio.sleep(at_least + PAUSE * 2.0**tries * (0.5 + self._context.host.jitter()))

    # --- stopping --------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Return True once nobody waits for what it says: it was stopped, or its time is over."""
        return self.fenced or self.over

    @property
    def now(self) -> datetime:
        return at(self._context.host.clock.now())

    @property
    @abstractmethod
    def over(self) -> bool:
        """Return True if the brain has ended, or nobody waits for it any more."""

    def fence(self, why: StopReason, requested: float) -> None:
        """From here on nothing it says reaches anyone."""
        if not self.fenced:
            self.why, self._requested = why, requested
            self.fenced = True
            self._silenced()
            if self._crossing is not None:
                self._crossing.close()

    def stop(self, why: StopReason, requested: float) -> None:
        """Fence it and make it end; on its loop."""
        self.fence(why, requested)
        if self.acknowledged is None:
            self.acknowledged = self._context.host.clock.now()
            self._press()

    def _press(self) -> None:
        if self.over:
            return
        if self._presses == PRESSES:
            self._give_up()
            return
        self._presses += 1
        if self._task is not None and not self._blocking:
            self._task.cancel()
        self._aloop.call_later(self._context.limits.stop_patience / PRESSES, self._press)

    def _give_up(self) -> None:
        self.leave_behind(f"brain {self.turn.profile.name}")
        if self._thread is not None:
            self._thread.give_up()
        log.warning(
            "a brain would not stop and was abandoned",
            extra={"run": self.run_id, "session": self._where, "root": self.root},
        )
        self._left()

    def leave_behind(self, name: str) -> None:
        """What cannot be killed, and whose words count for nothing from now on."""
        self._abandoned += (name,)

    def leave_running(self, name: str, task: asyncio.Task[Any]) -> None:
        """The same of a task that does not heed that it is cancelled."""
        self.leave_behind(name)
        log.warning("something would not stop and was abandoned", extra={"run": self.run_id, "what": name})
        if (home := self._agent()) is not None:
            home.orphan(task)

    def _agent(self) -> TaskOwner | None:
        """Return the agent on whose loop it thinks, if it is one."""
        return None

    @property
    def patience(self) -> float:
        return self._context.limits.stop_patience

    def stopped(self) -> Stop:
        now = self._context.host.clock.now()
        return Stop(self._requested, self.acknowledged or now, now, self._abandoned)

    def report(self, error: BaseException) -> Report:
        """Log a failure with all that helps to find it, and return what is kept of it."""
        turn, clean = self.turn, self._context.redactor.clean
        about = {
            "user": turn.user_id,
            "session": self._where,
            "excerpt": excerpt_of(self._context, turn.text),
            "root": self.root,
            "brain": turn.profile.name,
        }
        found = report(error, self.run_id, about, clean)
        self._context.breakers.told(turn.profile, found.fault)
        return found


def _caused(raised: BaseException) -> BrainFailed:
    """Return an error for what cannot be raised here, with its traceback."""
    error = BrainFailed(f"it raised {type(raised).__name__}")
    error.__cause__ = raised
    return error


def is_cancelled() -> bool:
    """Whether someone has cancelled this task; a brain can raise the same error by itself, or let one through."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_discarded(task: asyncio.Task[Any] | None) -> bool:
    """Return True if a coroutine of this task is being closed together with its loop instead of run.

    That is a GeneratorExit from outside; a brain, a step or a tool can raise one as well.
    """
    try:
        return asyncio.current_task() is not task
    except RuntimeError:  # no loop runs here
        return True


def is_blocking(brain: Brain) -> bool:
    """Return True if it is a plain generator function, to be run in a thread of its own."""
    plain = brain.__func__ if type(brain) is MethodType else brain
    if type(plain) is FunctionType:
        return bool(plain.__code__.co_flags & inspect.CO_GENERATOR)
    call = getattr(brain, "__call__", brain)  # noqa: B004 — an object's own generator method
    return inspect.isgeneratorfunction(brain) or inspect.isgeneratorfunction(call)


def excerpt_of(context: RuntimeContext, text: str) -> str:
    """The beginning of what was said, for the log. Half a secret would not be known as one: they are hidden first."""
    return context.redactor.clean(text[:10_000])[:80]


@dataclass(frozen=True, slots=True)
class Report:
    """A failure as it is kept with the record of its run."""

    fault: faults.Fault
    sentence: str
    """What people read."""
    traceback: str
    """What the author of the brain reads."""


def report(error: BaseException, run_id: str, about: Mapping[str, str], clean: Callable[[str], str]) -> Report:
    """Log a failure, and return what is kept of it; `clean` removes secrets."""
    fault, failure = faults.sort(error), tracebacks.describe(error)
    traceback = tracebacks.cut(clean(failure.text), tracebacks.MOST)
    log.error(
        "a run has failed",
        exc_info=error,
        extra={
            **about,
            "run": run_id,
            "reference": reference(run_id),
            "error_type": type(error).__name__,
            "error": failure.summary,
            "fault": str(fault),
            "traceback": "" if tracebacks.is_explained(fault, traceback) else traceback,
        },
    )
    advice = error.advice if isinstance(error, BrainFailed) else None
    return Report(fault, clean(faults.sentence(fault, run_id, advice, faults.detail(error))), traceback)


def _said(chunk: object, stream: object) -> tuple[str, str]:
    """Return the text of a chunk and its channel. Raise BrainFailed, at the line that yielded it, if it is none."""
    if isinstance(chunk, str):
        return str(chunk), Channel.FINAL
    if not isinstance(chunk, Chunk):
        raise _misplaced(f"yielded {type(chunk).__name__}", stream)
    text: object = chunk.text
    if not isinstance(text, str):
        raise _misplaced(f"yielded a Chunk whose text is {type(text).__name__}", stream)
    if chunk.channel not in _CHANNELS:
        known = ", ".join(sorted(_CHANNELS))
        raise _misplaced(f"yielded a Chunk for the channel {chunk.channel!r:.80}, not for one of {known}", stream)
    return text, chunk.channel


def _misplaced(what: str, stream: object) -> BrainFailed:
    """Return the error for what a brain has yielded, with the place in its code."""
    place = tracebacks.suspended_at(stream)
    where = "" if place is None else f" at {place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return BrainFailed(f"the brain {what}{where}: yield str or roost.Chunk").with_traceback(place)
