"""Replay: a finished run is executed again with its recorded input, and its steps are answered from the journal.

Nothing is sent, remembered or written. A request of the brain that is not recorded is a difference, and the replay ends
there; with `live`, the step is executed. Tokens of live model calls count like those of a run.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NoReturn

from roost.core.brain_data.brain_context import ContextEntry, ContextKey, Scope
from roost.core.envelopes.envelope import Kind
from roost.core.failures import faults
from roost.core.journal.action_log import PARTIAL, changes, differences
from roost.core.journal.run_history import FORMAT, Replay, parsed_input
from roost.core.limits.usage import Usage
from roost.core.runs import RunOutcome
from roost.core.talks.messages import Message
from roost.core.talks.runs import StopReason
from roost.core.talks.side_channels import Channel
from roost.core.values import checks
from roost.ports import Loop, Turn
from roost.runtime.context import RuntimeContext
from roost.runtime.execution.turn_execution import TurnExecution
from roost.runtime.replays.replay_actions import CUT_OFF, ReplayActions
from roost.runtime.turns.artifacts import TurnArtifacts
from roost.runtime.turns.meeting import MeetingOutput
from roost.runtime.turns.shared_state import unread
from roost.stores.sql.brain_data import brain_context
from roost.stores.sql.run_history import StoredRun
from roost.stores.sql.tables import token_usage

MARGIN = 1_000
"""Maximum number of entries that were added after the run."""


class Replayer(TurnExecution):
    """Execution of the same brain over the same turn. Created on its loop and used once."""

    def __init__(
        self,
        context: RuntimeContext,
        loop: Loop,
        logged: StoredRun,
        turn: Turn,
        steered: Mapping[int, tuple[Message, ...]],
        brain_context: RecordedBrainContext,
        until: int | None,
        live: bool,
    ) -> None:
        super().__init__(context, loop, logged.run.run_id, logged.run.root)
        self.run_id = logged.run.run_id
        self._live = live
        self._logged = logged
        self._given = parsed_input(logged.turn_input)
        self._said: list[str] = []
        self._over = False
        self._steering_reads = 0
        self._steered = steered
        self.halted: str | None = None
        """Reason why the replay ended before the brain did."""
        self.stopped_at: int | None = None
        turn._runtime = self
        self.turn = turn
        self.actions = ReplayActions(context, self, logged, until, live)
        self._meeting_output = (
            MeetingOutput(turn.meeting, self._said, lambda: self.actions, self.flush)
            if turn.kind == Kind.MEETING
            else None
        )
        self.brain_context = brain_context

    @property
    def now(self) -> datetime:
        return self._logged.run.started

    async def play(self, seconds: float) -> Replay:
        try:
            async with asyncio.timeout(seconds):
                await self._run()
        except TimeoutError:
            self.halted = f"the replay did not end within {seconds:g} seconds"
        finally:
            self.fenced = self._over = True
            await self._keep_usage()
        return self._result()

    async def _keep_usage(self) -> None:
        """Add the usage of live model calls to that of the profile on this day."""
        if self.usage.tokens:
            host, name = self._context.host, self.turn.profile.name
            add, now = token_usage.add_usage, host.clock.now()
            await self._context.store.write(add, host.new_id("replay"), name, self.usage, now)

    async def _run(self) -> None:
        self._task = self._aloop.create_task(self._iterate(), name=f"replay {self.run_id}")
        try:
            await asyncio.wait({self._task})
        finally:
            self._task.cancel()
        try:
            await self._task
            if self._meeting_output is not None:
                self.actions.add_last_entries(self._meeting_output)
        except asyncio.CancelledError:
            if self.halted is None and self.stopped_at is None:
                self.error = asyncio.CancelledError("the brain was cancelled")
        except Exception as error:
            self.error = error

    async def halt(self, why: str | None, stopped_at: int | None = None) -> NoReturn:
        """Stop the replay; the caller never returns."""
        if self.halted is None and self.stopped_at is None:
            self.halted, self.stopped_at = why, stopped_at
        self.fence(StopReason.STOP, 0.0)
        if self._task is not None:
            self._task.cancel()
        await self._aloop.create_future()
        raise asyncio.CancelledError

    def abort(self) -> None:
        """Stop the replay: nobody waits for its result."""
        if not self._over and self._task is not None:
            self.halted = self.halted or "the replay was stopped"
            self._task.cancel()

    # --- what came of it -------------------------------------------------------------------------

    def _result(self) -> Replay:
        logged, text = self._logged, "".join(self._said)
        differences = list(self._differences(text))
        return Replay(
            self.run_id,
            text,
            logged.text,
            not differences,
            "\n".join(differences),
            tuple(self.actions.taken),
            tuple(self.actions.sent),
            self.stopped_at,
            None if self.error is None else self._error_text(self.error),
        )

    def _differences(self, text: str) -> Sequence[str]:
        logged, found = self._logged, []
        cut_off = self.stopped_at is not None or logged.run.outcome in CUT_OFF or not logged.is_whole
        if self.halted is not None:
            found.append(self.halted)
        if cut_off:  # one text is a prefix of the other
            length = min(len(text), len(logged.text))
            said, recorded = text[:length], logged.text[:length]
        else:
            said, recorded = text, logged.text
        if said != recorded and self.halted is None:
            found += difflib.unified_diff(
                recorded.splitlines(), said.splitlines(), "recorded", "replayed", lineterm="", n=1
            )
        fault = None if self.error is None else str(faults.sort(self.error))
        if self.halted is None and not cut_off and fault != logged.run.fault:
            found.append(
                f"the replay ended with {fault or 'no error'}, and the run with {logged.run.fault or 'no error'}"
            )
        if self.halted is None and self._given.get("v", 1) >= FORMAT:
            found += self._action_differences()
        return found

    def _action_differences(self) -> Iterator[str]:
        """Yield the actions that differ. Of a run that was stopped, only the common part is compared."""
        outcome, recorded = self._logged.run.outcome, self._given.get("did", {})
        is_whole = self.stopped_at is None and outcome not in CUT_OFF
        if is_whole and outcome == RunOutcome.DONE and self.error is None:
            for content in changes(self._given.get("state"), unread(self.turn.state)):
                self.action_log.add(content)
        if not is_whole:
            done = recorded.get("done", {})
            recorded = {**recorded, "done": {name: done[name] for name in done if not name.startswith(PARTIAL)}}
        replayed = self.action_log.kept(self._context.redactor.clean_json, thoughts=is_whole)
        return differences(recorded, replayed, missing=self.stopped_at is None, added=outcome not in CUT_OFF)

    # --- the runner's side of the turn -------------------------------------------------------------

    def _error_text(self, error: BaseException) -> str:
        return self._context.redactor.clean(f"{type(error).__name__}: {error}")

    def _on_output(self, text: str, channel: str) -> None:
        if channel == Channel.FINAL:
            self._said.append(checks.clean(text))

    def _on_abandoned(self) -> None:
        self._over = True

    @property
    def over(self) -> bool:
        return self._over

    def take_steering(self) -> tuple[Message, ...]:
        self._steering_reads += 1
        return self._steered.get(self._steering_reads, ())

    def spend(self, usage: Usage) -> None:
        """Count the usage of a live model call; that of a recorded one was counted by the run."""
        if self._live and not self.actions.recalls:
            super().spend(usage)

    def allowance(self) -> int | None:
        return super().allowance() if self._live else None

    async def pause(self, tries: int, at_least: float) -> None:
        """Return at once: a replay does not wait."""


class RecordedBrainContext:
    """Context entries from before a run. Values are empty, since their former state is unknown; nothing is written."""

    def __init__(self, context: RuntimeContext, place: ContextKey, run_id: str) -> None:
        self._context = context
        self._place = place
        self._run_id = run_id
        self.name = f"{place.owner}#{place.lane}" if place.lane else place.owner

    @property
    def artifacts(self) -> TurnArtifacts:
        return TurnArtifacts(self._context, self._place, writes=False)

    async def read(self, app: str, limit: int) -> tuple[list[ContextEntry], dict[Scope, dict[str, str]]]:
        read = brain_context.read
        entries, _ = await self._context.store.read(read, self._place, app, limit + MARGIN)
        return [entry for entry in entries if entry.run_id < self._run_id][-limit:], {}

    def add(self, item: str, seqs: Sequence[int] = (), said: Collection[str] = ()) -> None:
        pass

    def set(self, scope: Scope, name: str, value: str) -> None:
        pass
