"""A run: one brain thinking once for one lane, stoppable at any moment."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any

from roost.core import faults
from roost.core.ids import reference
from roost.core.messages import Message, Status
from roost.core.runs import Closing, Envelope, Outcome, Stop, Why
from roost.errors import BrainFailed
from roost.ports import Brain, Chunk, Loop, Pending, Profile, Turn
from roost.runtime.answer import Answer
from roost.runtime.live import LiveTalk
from roost.runtime.shop import Shop

log = logging.getLogger("roost.run")

PRESSES = 3
"""How often a brain is cancelled before it is given up."""
BREATH = 0.002
"""A brain that yields without ever waiting lets the loop turn after so many seconds."""


class Run:
    """Made for one turn and thrown away after it. `stop` may be asked for at any moment, `fence` from any thread."""

    def __init__(
        self, shop: Shop, loop: Loop, live: LiveTalk, envelopes: tuple[Envelope, ...], profile: Profile,
        new: list[Message], history: list[Message],
    ) -> None:  # fmt: skip
        self._shop = shop
        self._loop = loop
        self._live = live
        self._aloop = asyncio.get_running_loop()
        self.run_id = shop.host.new_id("run")
        self.epoch = live.epoch
        self.envelopes = envelopes
        self.fenced = False
        self.why: Why | None = None
        self.quiesced: Pending[Stop] = shop.host.pending()
        self.error: BaseException | None = None
        self._answer = Answer(shop, loop, live, self.run_id, self.epoch)
        self._steering: deque[tuple[Envelope, Message]] = deque()
        self._started = shop.host.clock.now()
        self._requested = 0.0
        self.acknowledged: float | None = None
        self._abandoned: tuple[str, ...] = ()
        self._blocking = False
        self._presses = 0
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[None] = self._aloop.create_future()
        state = json.loads(live.state) if live.state else {}
        text = new[0].content if len(new) == 1 else "\n".join(m.content for m in new)
        self.turn = Turn(
            "talk", text, tuple(new), history, profile, live.owner, live.talk_id, self.run_id, state, self
        )  # fmt: skip

    # --- thinking --------------------------------------------------------------------------------

    async def think(self) -> None:
        """Return when the brain has ended, has failed, or was given up."""
        # A bare task: what third-party code does with its cancel scopes stays inside of it.
        self._task = self._aloop.create_task(self._iterate(), name=f"{self.run_id} {self._live.talk_id}")
        self._task.add_done_callback(self._over)
        try:
            await self._ended
        finally:
            await self._answer.finish()

    async def _iterate(self) -> None:
        try:
            brain = self._shop.brains.loaded(self.turn.profile) or await self._load()
            if is_blocking(brain):
                await self._in_thread(brain)
            else:
                await self._on_loop(brain)
        except (SystemExit, KeyboardInterrupt) as error:
            # Raised further it would end the worker's loop, and with it everybody's runs.
            raise BrainFailed(f"the brain raised {type(error).__name__}") from error
        finally:
            self._answer.finished = True

    async def _on_loop(self, brain: Brain) -> None:
        stream = brain(self.turn)
        if not isinstance(stream, AsyncIterator):
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
        await self._off_loop(lambda: found.append(self._shop.brains.load(self.turn.profile)))
        return found[0]

    async def _in_thread(self, brain: Brain) -> None:
        self._blocking = True

        def speak() -> None:
            for chunk in brain(self.turn):  # type: ignore[union-attr]
                if self.fenced:
                    break
                self._say(chunk)

        await self._off_loop(speak)

    async def _off_loop(self, act: Callable[[], object]) -> None:
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
            except (SystemExit, KeyboardInterrupt, StopIteration) as raised:
                error = BrainFailed(f"the brain raised {type(raised).__name__}")
            except BaseException as raised:
                error = raised
            self._loop.call(finish, error)

        self._shop.host.run_blocking(f"roost-brain-{self.turn.profile.name}", guarded)
        await finished

    def _over(self, task: asyncio.Task[None]) -> None:
        error = asyncio.CancelledError() if task.cancelled() else task.exception()
        if not self._ended.done():
            self.error = error
            self._ended.set_result(None)

    def _say(self, chunk: str | Chunk) -> None:
        if not self.fenced:
            self._answer.say(chunk if type(chunk) is str else _text_of(chunk))

    # --- being steered ---------------------------------------------------------------------------

    def offer(self, envelope: Envelope, message: Message) -> None:
        self._steering.append((envelope, message))

    def untaken(self) -> list[Envelope]:
        """What was offered and never taken; it waits for the next run."""
        left = [envelope for envelope, _ in self._steering]
        self._steering.clear()
        return left

    @property
    def stopping(self) -> bool:
        return self.fenced

    def take_steering(self) -> tuple[Message, ...]:
        taken = []
        while self._steering and not self.fenced:
            envelope, message = self._steering.popleft()
            self.envelopes += (envelope,)
            taken.append(message)
        if taken:
            self._answer.split()
        return tuple(taken)

    # --- stopping --------------------------------------------------------------------------------

    def fence(self, why: Why, requested: float) -> None:
        """From here on nothing it says reaches anyone."""
        if not self.fenced:
            self.why, self._requested = why, requested
            self.fenced = self._answer.finished = True

    def stop(self, why: Why, requested: float) -> None:
        """Fence it and make it end; on its loop."""
        self.fence(why, requested)
        if self.acknowledged is None:
            self.acknowledged = self._shop.host.clock.now()
            self._press()

    def _press(self) -> None:
        if self._ended.done():
            return
        if self._presses == PRESSES:
            self._give_up()
            return
        self._presses += 1
        if self._task is not None and not self._blocking:
            self._task.cancel()
        self._aloop.call_later(self._shop.limits.stop_patience / PRESSES, self._press)

    def _give_up(self) -> None:
        self._abandoned = (f"brain {self.turn.profile.name}",)
        log.warning(
            "a brain would not stop and was abandoned",
            extra={"run": self.run_id, "session": self._live.talk_id},
        )
        self._ended.set_result(None)

    # --- ending ----------------------------------------------------------------------------------

    def closing(self) -> Closing:
        """What it leaves behind, now that it is over."""
        common: dict[str, Any] = {
            "run_id": self.run_id, "talk_id": self._live.talk_id, "epoch": self.epoch, "text": self._answer.said(),
            "envelopes": self.envelopes, "started": self._started, "first_chunk": self._answer.first_chunk,
        }  # fmt: skip
        if self.fenced:
            handled = {Why.INTERRUPT: None, Why.ROLLBACK: None, Why.DRAIN: False}.get(self.why or Why.STOP, True)
            return Closing(
                outcome=Outcome.STOPPED,
                status=Status.INTERRUPTED,
                handled=handled,
                stop=self.stopped(),
                **common,
            )
        state, error = self._state()
        if error is not None:
            fault, sentence = report(error, self.run_id, self._live.talk_id, self.turn.text)
            return Closing(
                outcome=Outcome.FAILED,
                status=Status.FAILED,
                handled=True,
                error=sentence,
                fault=fault,
                **common,
            )
        return Closing(outcome=Outcome.DONE, status=Status.COMPLETE, handled=True, state=state, **common)

    def lost(self, fault: faults.Fault | None) -> Closing:
        """The same for a run whose worker is no more: it is run again, or fails if it is to blame."""
        self.fence(Why.LOST, self._shop.host.clock.now())
        error = None
        if fault is not None:
            blame = BrainFailed("the loop of its worker did not turn any more", kind=fault)
            _, error = report(blame, self.run_id, self._live.talk_id, self.turn.text)
        return Closing(
            run_id=self.run_id, talk_id=self._live.talk_id, epoch=self.epoch, text=self._answer.said(),
            envelopes=self.envelopes, started=self._started, first_chunk=self._answer.first_chunk, outcome=Outcome.LOST,
            status=Status.FAILED if error else Status.INTERRUPTED, handled=error is not None, error=error,
            fault=fault or faults.Fault.LOST_WORKER, supersede=True,
        )  # fmt: skip

    def stopped(self) -> Stop:
        now = self._shop.host.clock.now()
        return Stop(self._requested, self.acknowledged or now, now, self._abandoned)

    def _state(self) -> tuple[str | None, BaseException | None]:
        if self.error is not None or (not self.turn.state and not self._live.state):
            return None, self.error
        try:
            return json.dumps(self.turn.state), None
        except (TypeError, ValueError, RecursionError) as error:
            return None, error


def is_blocking(brain: Brain) -> bool:
    """Whether it is a plain generator function, to be run in a thread of its own."""
    call = getattr(brain, "__call__", brain)  # noqa: B004 — an object's own generator method
    return inspect.isgeneratorfunction(brain) or inspect.isgeneratorfunction(call)


def report(error: BaseException, run_id: str, talk_id: str, excerpt: str) -> tuple[str, str]:
    """Log what happened with all that helps to find it; give its sort and the sentence for people."""
    fault = faults.sort(error)
    log.error(
        "a run has failed",
        exc_info=error,
        extra={
            "session": talk_id, "run": run_id, "reference": reference(run_id), "excerpt": excerpt[:80],
            "error_type": type(error).__name__, "fault": str(fault),
        },
    )  # fmt: skip
    return fault, faults.sentence(fault, run_id)


def _text_of(chunk: object) -> str:
    if isinstance(chunk, Chunk) and isinstance(chunk.text, str):
        return chunk.text
    if isinstance(chunk, str):
        return str(chunk)
    raise BrainFailed(f"a brain must yield texts or chunks, not {type(chunk).__name__}")
