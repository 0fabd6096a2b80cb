"""Execution of one brain over one turn. It can be stopped at any moment.

Subclasses settle the turn: `TalkRun` for talks, `Work` for everything else that an agent handles.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any

from roost.core.failures import faults
from roost.core.journal.action_log import ActionLog
from roost.core.limits.budgets import Resource
from roost.core.limits.usage import NOTHING, Usage
from roost.core.runs import RunOutcome
from roost.core.talks.messages import at
from roost.core.talks.runs import Stop, StopReason
from roost.core.talks.side_channels import Channel
from roost.core.values.correlation import ROOT
from roost.errors import BrainFailed
from roost.ports import Brain, Chunk, Loop, PlainTurn, Tracer, Turn, is_blocking
from roost.runtime.context import RuntimeContext
from roost.runtime.execution.await_check import check_awaited
from roost.runtime.execution.cancellation import CANCEL_ATTEMPTS, TaskOwner, is_cancelled, is_discarded
from roost.runtime.execution.chunks import text_and_channel
from roost.runtime.execution.failure_report import Report, report
from roost.runtime.execution.redacted_output import RedactedOutput
from roost.runtime.execution.thread_bridge import ThreadBridge
from roost.runtime.execution.thread_call import call_on_thread
from roost.runtime.execution.time_limit import TimeLimit
from roost.stores.sql.tables import attachments

if TYPE_CHECKING:
    from roost.runtime.limits.abandoned_threads import Thread

log = logging.getLogger("roost.run")

FINAL = Channel.FINAL
PAUSE = 0.5
"""Approximate seconds before the second attempt of a model call."""
LONGEST_STRETCH = 0.002
"""Seconds after which a brain that yields without awaiting lets other tasks run."""


class TurnExecution(ABC):
    """Execution of a brain over one turn. `stop` is called on its loop, `fence` on any thread.

    After `fence`, all further output is discarded.
    """

    # Class attributes are the initial values: ten thousand executions are created per second.
    turn: Turn
    fenced = False
    why: StopReason | None = None
    error: BaseException | None = None
    acknowledged: float | None = None
    usage = NOTHING
    is_parked = False
    """True while the turn waits for a person: it may be ended, and another run continues it."""
    _agent: TaskOwner | None = None
    """The agent on whose loop the turn runs, if any."""
    _task: asyncio.Task[None] | None = None
    """Task that iterates over the brain."""
    _requested = 0.0
    _abandoned: tuple[str, ...] = ()
    _blocking = False
    _thread: Thread | None = None
    """Thread of a blocking brain."""
    _bridge: ThreadBridge | None = None
    """Bridge from the thread of a blocking brain to this loop."""
    _cancels = 0
    _limit: TimeLimit | None = None
    _redacted: RedactedOutput | None = None
    """Output without secrets; None until a secret is known."""
    _stream: object = None
    """Generator of the brain."""
    _parks = 0
    _action_log: ActionLog | None = None
    acts = 0
    """Number of operations that must not be interrupted by `suspend`."""

    def __init__(self, context: RuntimeContext, loop: Loop, where: str, root: str) -> None:
        self._context = context
        self.loop = loop
        self._where = where
        self.root = root
        """Id of the origin."""
        self._aloop = asyncio.get_running_loop()
        self.run_id = context.host.new_id("run")
        self._started = context.host.clock.now()

    # --- hooks of the subclasses -----------------------------------------------------------------

    @abstractmethod
    def _on_output(self, text: str, channel: str) -> None:
        """Handle a piece of output."""

    def _on_fenced(self) -> None:  # noqa: B027 — optional
        """Handle the fencing of this execution."""

    def waits(self, waiting: bool) -> None:  # noqa: B027
        """Record that the turn starts or ends waiting for an answer."""

    async def regain(self) -> None:  # noqa: B027
        """Wait until the agent has a slot again, if it released its slot while all its turns waited."""

    def park(self, parked: bool) -> None:
        """Record that the turn starts or ends waiting for a person."""
        self._parks += 1 if parked else -1
        self.is_parked = self._parks > 0
        if self._limit is not None:
            self._limit.hold(self.is_parked)
        self.waits(parked)

    async def read_attachment(self, attachment_id: str) -> bytes:
        """Return the bytes of a file that a message of the turn has."""
        return await self._context.store.read(attachments.read, attachment_id)

    @contextmanager
    def acting(self) -> Iterator[None]:
        """Return a context for an operation that `suspend` must not interrupt."""
        self.acts += 1
        try:
            yield
        finally:
            self.acts -= 1

    @property
    def may_suspend(self) -> bool:
        """Return True if the run can be ended now, and continued from its journal after the decision."""
        return self.is_parked and not self.acts and not self.fenced

    def suspend(self) -> None:
        """End the run while a person decides; another run continues from the journal. Called on its loop."""
        if self.may_suspend:
            self.stop(StopReason.WAIT, self._context.host.clock.now())

    @abstractmethod
    def _on_abandoned(self) -> None:
        """Release the callers that wait for a brain that did not stop and was abandoned."""

    # --- running the brain -----------------------------------------------------------------------

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
                await self._context.token_budget.open(profile)
            if profile.seconds_per_run is None:
                await self._run_brain(brain)
            else:
                self._limit = TimeLimit(profile.seconds_per_run)
                await self._limit.run(self._run_brain(brain))
        except Exception:
            raise
        except BaseException as error:
            if isinstance(error, GeneratorExit) and is_discarded(self._task):
                raise
            if isinstance(error, asyncio.CancelledError) and (self.fenced or is_cancelled()):
                raise
            # Otherwise it would end the loop, and all other runs on it.
            raise BrainFailed(f"the brain raised {type(error).__name__}") from error
        finally:
            self._limit = None
            ROOT.set("")  # the task is reused

    def _run_brain(self, brain: Brain) -> Coroutine[Any, Any, None]:
        return self._in_thread(brain) if is_blocking(brain) else self._on_loop(brain)

    async def _on_loop(self, brain: Brain) -> None:
        self._stream = stream = brain(self.turn)
        if type(stream) is not AsyncGeneratorType and not isinstance(stream, AsyncIterator):
            raise BrainFailed(
                f"the brain {self.turn.profile.brain!r} returned {type(stream).__name__}: it must be a generator"
            )
        time = self._aloop.time
        yielded_at = time()
        close = getattr(stream, "aclose", None)
        try:
            async for chunk in stream:
                if self.fenced:
                    break
                self._say(chunk)
                if time() - yielded_at > LONGEST_STRETCH:
                    await asyncio.sleep(0)
                    yielded_at = time()
            if self.turn._coroutines is not None or self.turn.meeting is not None:
                await check_awaited(self.turn)
        except GeneratorExit:
            if is_discarded(self._task):
                close = None  # a coroutine that is being closed cannot await
            raise
        finally:
            self.flush(end=True)
            if close is not None:
                await close()

    async def _load(self) -> Brain:
        """Load the brain on its own thread: an import must not block the loop."""
        found: list[Brain] = []
        await self.off_loop(lambda: found.append(self._context.brains.load(self.turn.profile)))
        return found[0]

    async def _in_thread(self, brain: Brain) -> None:
        self._blocking = True
        name = self.run_id if self._task is None else self._task.get_name()
        self._bridge = bridge = ThreadBridge(self._context.host, self.loop, name)
        if self.fenced:  # during the construction of the bridge
            bridge.close()

        def speak() -> None:
            try:
                self._stream = stream = brain(PlainTurn(self.turn, bridge))  # type: ignore[arg-type]
                for chunk in stream:  # type: ignore[union-attr]
                    if self.fenced:
                        break
                    self._say(chunk)
            finally:
                self.flush(end=True)

        try:
            await self.off_loop(speak)
        finally:
            await bridge.finish(self.patience)

    async def off_loop(self, act: Callable[[], object], name: str = "") -> None:
        """Run a function on its own thread and raise its error.

        A thread cannot be killed: if this call is cancelled, the thread is abandoned, and the receipt contains `name`.
        """
        thread = self._context.abandoned.thread()
        if not name:
            self._thread = thread
        title = f"roost {name}" if name else f"roost-brain-{self.turn.profile.name}"
        try:
            await call_on_thread(self._context.host, self.loop, title, thread, act)
        except asyncio.CancelledError:
            if thread.give_up() and name:
                self.add_abandoned(name)
            raise

    def _say(self, chunk: str | Chunk) -> None:
        if self.fenced:
            return
        text, channel = (chunk, FINAL) if type(chunk) is str else text_and_channel(chunk, self._stream)
        if self._context.redactor.known is not None and channel != Channel.TOOLS:  # tool notes are redacted as JSON
            if self._redacted is None:
                self._redacted = RedactedOutput(self._context.redactor)
            text = self._redacted.feed(text, channel)
        self._pass_on(text, channel)

    def note(self, text: str, channel: str) -> None:
        """Add a note of the runtime to the output, as if the brain had yielded it."""
        self._say(Chunk(text, channel))

    def flush(self, *, end: bool = False) -> None:
        """Pass on text that was held back as a possible start of a secret; with `end`, all of it."""
        if self._redacted is not None:
            for text, channel in self._redacted.flush(end=end):
                if not self.fenced:
                    self._pass_on(text, channel)

    def _pass_on(self, text: str, channel: str) -> None:
        self._on_output(text, channel)
        if channel != FINAL:
            self.action_log.think(channel, text)

    @property
    def action_log(self) -> ActionLog:
        """Return the log of the actions of this run; created on the first use.

        Not a cached property: those of Python 3.11 share one lock among all threads.
        """
        if self._action_log is None:
            self._action_log = ActionLog()
        return self._action_log

    # --- usage -----------------------------------------------------------------------------------

    def spend(self, usage: Usage) -> None:
        self.usage += usage
        self._context.token_budget.add(self.turn.profile, usage)
        if usage.tokens:
            self._context.budgets.add(self.root, Resource.TOKENS, usage.tokens)

    def allowance(self) -> int | None:
        left = self._context.token_budget.allowance(self.turn.profile, self.usage)
        of_origin = self._context.budgets.left(self.root, Resource.TOKENS)
        return of_origin if left is None else min(left, of_origin)

    async def pause(self, tries: int, at_least: float) -> None:
        await asyncio.sleep(at_least + PAUSE * 2.0**tries * (0.5 + self._context.host.jitter()))

    # --- stopping --------------------------------------------------------------------------------

    @property
    def stopping(self) -> bool:
        """Return True once the output is discarded: the run was stopped, or its time is over."""
        return self.fenced or self.over

    @property
    def now(self) -> datetime:
        return at(self._context.host.clock.now())

    @property
    @abstractmethod
    def over(self) -> bool:
        """Return True if the brain has ended or was abandoned."""

    def fence(self, why: StopReason, requested: float) -> None:
        """Discard all further output."""
        if not self.fenced:
            self.why, self._requested = why, requested
            self.fenced = True
            self._on_fenced()
            if self._bridge is not None:
                self._bridge.close()

    def stop(self, why: StopReason, requested: float) -> None:
        """Fence the run and cancel the brain; called on its loop."""
        self.fence(why, requested)
        if self.acknowledged is None:
            self.acknowledged = self._context.host.clock.now()
            self._cancel()

    def _cancel(self) -> None:
        if self.over:
            return
        if self._cancels == CANCEL_ATTEMPTS:
            self._give_up()
            return
        self._cancels += 1
        if self._task is not None and not self._blocking:
            self._task.cancel()
        self._aloop.call_later(self._context.limits.stop_patience / CANCEL_ATTEMPTS, self._cancel)

    def _give_up(self) -> None:
        self.add_abandoned(f"brain {self.turn.profile.name}")
        if self._thread is not None:
            self._thread.give_up()
        log.warning(
            "brain did not stop and was abandoned; its output is discarded",
            extra={"run": self.run_id, "session": self._where, "root": self.root},
        )
        self._on_abandoned()

    def add_abandoned(self, name: str) -> None:
        """Add something that could not be stopped to the receipt."""
        self._abandoned += (name,)

    def abandon_task(self, name: str, task: asyncio.Task[Any]) -> None:
        """Abandon a task that ignores its cancellation."""
        self.add_abandoned(name)
        log.warning("%r ignored its cancellation and was abandoned", name, extra={"run": self.run_id, "what": name})
        if self._agent is not None:
            self._agent.orphan(task)

    @property
    def patience(self) -> float:
        return self._context.limits.stop_patience

    def stopped(self) -> Stop:
        now = self._context.host.clock.now()
        return Stop(self._requested, self.acknowledged or now, now, self._abandoned)

    def report(self, error: BaseException) -> Report:
        """Log a failure, report it to the circuit breaker, and return the report."""
        turn = self.turn
        about = {"user": turn.user_id, "session": self._where, "root": self.root, "brain": turn.profile.name}
        found = report(self._context, error, self.run_id, turn.text, about)
        self._context.breakers.record(turn.profile, found.fault)
        return found
