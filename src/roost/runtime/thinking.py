"""Thinking: one brain iterated once over one turn, stoppable at any moment, wherever it stands.

Whoever thinks says what comes of it: `Run` for talks, `Work` for everything else an agent is given.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import AsyncGeneratorType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from roost.core import faults
from roost.core.correlation import ROOT
from roost.core.ids import reference
from roost.core.notes import Channel
from roost.core.runs import Outcome, Stop, Why
from roost.core.usage import NOTHING, Usage
from roost.errors import BrainFailed
from roost.ports import Brain, Chunk, Loop, Tracer, Turn
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.activation import Activation

log = logging.getLogger("roost.run")

PRESSES = 3
"""How often a brain is cancelled before it is given up."""
FINAL = Channel.FINAL
_CHANNELS = frozenset(map(str, Channel))
PAUSE = 0.5
"""Seconds, about, before something is tried for the second time."""
BREATH = 0.002
"""A brain that yields without ever waiting lets the loop turn after so many seconds."""


class Thinking(ABC):
    """`stop` is called on its loop, `fence` on any thread. Once fenced, nothing it says reaches anyone."""

    # Made by the ten thousand each second: what all begin with stands here.
    turn: Turn
    fenced = False
    why: Why | None = None
    error: BaseException | None = None
    acknowledged: float | None = None
    usage = NOTHING
    is_parked = False
    """Whether it waits for a person: it may be ended at any moment, and goes on when it is run again."""
    _task: asyncio.Task[None] | None = None
    """The task that the brain is iterated in, while it is."""
    _requested = 0.0
    _abandoned: tuple[str, ...] = ()
    _blocking = False
    _presses = 0
    _limit: asyncio.Timeout | None = None
    _left_over = 0.0
    _parks = 0
    acts = 0
    """How much it does right now that must not be cut off, beside waiting for a person."""

    def __init__(self, shop: Shop, loop: Loop, where: str, root: str) -> None:
        self._shop = shop
        self.loop = loop
        self._where = where
        self.root = root
        """The id of that with which it all began."""
        self._aloop = asyncio.get_running_loop()
        self.run_id = shop.host.new_id("run")
        self._started = shop.host.clock.now()

    # --- what those who think see to themselves ----------------------------------------------------

    @abstractmethod
    def _heard(self, text: str, channel: str) -> None:
        """The brain has said this."""

    def _silenced(self) -> None:  # noqa: B027 — most have nothing to see to
        """It was fenced."""

    def waits(self, waiting: bool) -> None:  # noqa: B027
        """It waits for an answer, or does not any more."""

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
        """Whether it can be ended here, and taken up from its journal when a person has decided."""
        return self.is_parked and not self.acts and not self.fenced

    def rest(self) -> None:
        """A person takes their time: it is taken up from its journal when they have decided. On its loop."""
        if self.may_rest:
            self.stop(Why.WAIT, self._shop.host.clock.now())

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
        """It would not stop and was given up: whoever waits for it goes on."""

    # --- thinking --------------------------------------------------------------------------------

    def _iterate(self) -> Coroutine[Any, Any, None]:
        return self._think() if self._shop.tracer is None else self._traced(self._shop.tracer)

    async def _traced(self, trace: Tracer) -> None:
        about = {"kind": str(self.turn.kind), "where": self._where, "run": self.run_id, "root": self.root}
        with trace(f"roost {self.turn.kind}", about) as span:
            try:
                await self._think()
            except BaseException as error:
                span["outcome"] = str(Outcome.STOPPED if self.fenced else Outcome.FAILED)
                if not self.fenced:
                    span["fault"] = str(faults.sort(error))
                raise
            span["outcome"] = str(Outcome.STOPPED if self.fenced else Outcome.DONE)

    async def _think(self) -> None:
        ROOT.set(self.root)
        try:
            profile = self.turn.profile
            brain = self._shop.brains.loaded(profile) or await self._load()
            if profile.tools and self._shop.tools.has_servers:
                await self._shop.tools.prepare(profile)
            if profile.tokens_per_day is not None:
                await self._shop.ledger.open(profile)
            if profile.seconds_per_run is None:
                await self._say_all(brain)
            else:
                await self._in_time(brain, profile.seconds_per_run)
        except (Exception, GeneratorExit):
            raise
        except BaseException as error:
            if isinstance(error, asyncio.CancelledError) and (self.fenced or is_cancelled()):
                raise
            # Raised further it would end the worker's loop, and with it everybody's runs.
            raise BrainFailed(f"the brain raised {type(error).__name__}") from error
        finally:
            ROOT.set("")  # the task goes on with something else

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
        stream = brain(self.turn)
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
        except GeneratorExit:
            close = None  # thrown away together with its loop: nothing can be awaited any more
            raise
        finally:
            if close is not None:
                await close()

    async def _load(self) -> Brain:
        """On a thread of its own: what a module does while it is imported must not hold up the loop."""
        found: list[Brain] = []
        await self.off_loop(lambda: found.append(self._shop.brains.load(self.turn.profile)))
        return found[0]

    async def _in_thread(self, brain: Brain) -> None:
        self._blocking = True

        def speak() -> None:
            for chunk in brain(self.turn):  # type: ignore[union-attr]
                if self.fenced:
                    break
                self._say(chunk)

        await self.off_loop(speak)

    async def off_loop(self, act: Callable[[], object]) -> None:
        """Run it on a thread of its own, and raise what it raises."""
        finished: asyncio.Future[None] = self._aloop.create_future()

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
                    error = BrainFailed(f"it raised {type(raised).__name__}")
            except BaseException as raised:
                error = BrainFailed(f"it raised {type(raised).__name__}")
            self.loop.call(finish, error)

        here = contextvars.copy_context()  # whose span, whose log
        self._shop.host.run_blocking(f"roost-brain-{self.turn.profile.name}", lambda: here.run(guarded))
        await finished

    def _say(self, chunk: str | Chunk) -> None:
        if self.fenced:
            return
        if type(chunk) is str:
            self._heard(chunk, FINAL)
        else:
            self._heard(*_said(chunk))

    # --- what it costs ---------------------------------------------------------------------------

    def spend(self, usage: Usage) -> None:
        self.usage += usage
        self._shop.ledger.add(self.turn.profile, usage)

    def allowance(self) -> int | None:
        return self._shop.ledger.allowance(self.turn.profile, self.usage)

    async def pause(self, tries: int, at_least: float) -> None:
        await asyncio.sleep(at_least + PAUSE * 2.0**tries * (0.5 + self._shop.host.jitter()))

    # --- stopping --------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        return self.fenced

    @property
    @abstractmethod
    def over(self) -> bool:
        """Whether the brain has ended, or nobody waits for it any more."""

    def fence(self, why: Why, requested: float) -> None:
        """From here on nothing it says reaches anyone."""
        if not self.fenced:
            self.why, self._requested = why, requested
            self.fenced = True
            self._silenced()

    def stop(self, why: Why, requested: float) -> None:
        """Fence it and make it end; on its loop."""
        self.fence(why, requested)
        if self.acknowledged is None:
            self.acknowledged = self._shop.host.clock.now()
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
        self._aloop.call_later(self._shop.limits.stop_patience / PRESSES, self._press)

    def _give_up(self) -> None:
        self.leave_behind(f"brain {self.turn.profile.name}")
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

    def _agent(self) -> Activation | None:
        """The agent on whose loop it thinks, if it is one."""
        return None

    @property
    def patience(self) -> float:
        return self._shop.limits.stop_patience

    def stopped(self) -> Stop:
        now = self._shop.host.clock.now()
        return Stop(self._requested, self.acknowledged or now, now, self._abandoned)

    def report(self, error: BaseException) -> tuple[str, str]:
        """Log what happened with all that helps to find it; give its sort and the sentence for people."""
        fault, sentence = report(error, self.run_id, self._where, excerpt_of(self._shop, self.turn.text), self.root)
        self._shop.breakers.told(self.turn.profile, fault)
        return fault, self._shop.redactor.clean(sentence)


def is_cancelled() -> bool:
    """Whether someone has cancelled this task; a brain can raise the same error by itself, or let one through."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def is_blocking(brain: Brain) -> bool:
    """Whether it is a plain generator function, to be run in a thread of its own."""
    plain = brain.__func__ if type(brain) is MethodType else brain
    if type(plain) is FunctionType:
        return bool(plain.__code__.co_flags & inspect.CO_GENERATOR)
    call = getattr(brain, "__call__", brain)  # noqa: B004 — an object's own generator method
    return inspect.isgeneratorfunction(brain) or inspect.isgeneratorfunction(call)


def kept_state(state: object, most: int) -> str:
    """`turn.state` as it is kept. Raises BrainFailed for what cannot be."""
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BrainFailed(f"turn.state must be what JSON can hold: {error}", kind="state") from error
    if len(text) > most:
        raise BrainFailed(f"turn.state has {len(text):,} characters, and {most:,} may be kept", kind="state")
    return text


def excerpt_of(shop: Shop, text: str) -> str:
    """The beginning of what was said, for the log. Half a secret would not be known as one: they are hidden first."""
    return shop.redactor.clean(text[:10_000])[:80]


def report(error: BaseException, run_id: str, where: str, excerpt: str, root: str) -> tuple[str, str]:
    fault = faults.sort(error)
    log.error(
        "a run has failed",
        exc_info=error,
        extra={
            "session": where, "run": run_id, "reference": reference(run_id), "excerpt": excerpt,
            "error_type": type(error).__name__, "fault": str(fault), "root": root,
        },
    )  # fmt: skip
    advice = error.advice if isinstance(error, BrainFailed) else None
    return fault, faults.sentence(fault, run_id, advice, faults.detail(error))


def _said(chunk: object) -> tuple[str, str]:
    """Its text and the channel it belongs to."""
    if isinstance(chunk, Chunk) and isinstance(chunk.text, str):
        if chunk.channel not in _CHANNELS:
            raise BrainFailed(f"there is no channel {chunk.channel!r:.80}: use one of {', '.join(_CHANNELS)}")
        return chunk.text, chunk.channel
    if isinstance(chunk, str):
        return str(chunk), Channel.FINAL
    raise BrainFailed(f"a brain must yield texts or chunks, not {type(chunk).__name__}")
