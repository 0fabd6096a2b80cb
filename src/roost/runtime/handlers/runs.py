"""Runs: list, show and replay finished runs."""

from __future__ import annotations

import builtins
from dataclasses import replace
from typing import Any

from roost.core.brain_data.brain_context import ContextKey
from roost.core.envelopes.envelope import Kind
from roost.core.journal.run_history import Replay, Run, RunEntry, RunInput, parsed_input
from roost.core.runs import RunOutcome
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.core.values.addresses import of_agent
from roost.errors import Conflict, Invalid, LimitReached, NotFound
from roost.ports import Loop
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.runtime.replays.rebuild import TurnBuilder
from roost.runtime.replays.replay import RecordedBrainContext, Replayer
from roost.stores.sql import run_history
from roost.stores.sql.run_history import RunFilter, StoredRun

AT_ONCE = 8
"""Maximum number of concurrent replays of one user; each has a thread."""
LONGEST = 3_600.0
"""Maximum seconds of a replay."""
TO_END = 1.0
"""Seconds that the thread of a replay is given to end, before it is abandoned."""


class Runs:
    """Runs of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context
        self._replays: set[tuple[str, str]] = set()
        """Running replays: the user, and a name of each."""

    async def list(
        self,
        user_id: str,
        *,
        talk: str | None = None,
        agent: str | None = None,
        outcome: RunOutcome | str | None = None,
        kind: Kind | str | None = None,
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[Run]:
        """Return finished runs, newest first: of a talk, of an agent, or all; with this outcome, and of this kind.

        `before` is the last id of the previous page.
        """
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        if talk is not None and agent is not None:
            raise Invalid("name a talk or an agent, not both")
        if talk is not None:
            checks.name(talk, "the talk session id")
        address = None if agent is None else of_agent(agent, user_id)
        if address is not None and address.user_id != user_id:
            raise NotFound(f"there is no agent {agent!r:.80}: it was deleted, or it never existed")
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        wanted = RunFilter(
            talk,
            None if address is None else str(address.agent_id),
            None if outcome is None else checks.choice(outcome, "the outcome", RunOutcome),
            None if kind is None else checks.choice(kind, "the kind", Kind),
        )
        return await self._context.store.read(run_history.listed, user_id, wanted, limit, last)

    async def get(self, user_id: str, run_id: str) -> RunEntry:
        """Return a run with its answer and its steps in order, including those of earlier attempts."""
        logged = await self._logged(user_id, run_id)
        turn_input = checks.normalized(parsed_input(logged.turn_input))
        return RunEntry(
            logged.run,
            logged.text,
            logged.steps,
            turn_input,
            logged.run.usage,
            logged.refused,
            logged.traceback,
            tuple(map(self._cleaned, logged.inputs)),
            logged.first_output,
            logged.stop,
        )

    def _cleaned(self, given: RunInput) -> RunInput:
        """Return a message without secrets."""
        clean, data = self._context.redactor.clean, self._context.redactor.clean_value(given.data)
        return replace(given, text=clean(given.text), subject=clean(given.subject), data=data)

    async def replay(
        self,
        user_id: str,
        run_id: str,
        *,
        until: int | None = None,
        live: bool = False,
        within: float = 60.0,
    ) -> Replay:
        """Replay a run from its journal and compare the outcome; nothing is sent or written.

        The replay ends after `until` steps, and at the latest after `within` seconds. `live`: execute steps that are
        not recorded or come after `until`; otherwise the replay ends there. Their tokens count, as those of a run do.
        """
        if until is not None:
            checks.count(until, "`until`", least=0, most=1_000_000)
        checks.flag(live, "`live`")
        if (seconds := checks.seconds(within, "`within`")) > LONGEST:
            raise Invalid(f"`within` must be at most {LONGEST:g} seconds, not {checks.shown(within)}")
        logged = await self._logged(user_id, run_id, for_replay=True)
        turn_input = parsed_input(logged.turn_input)
        turn, steered = await TurnBuilder(self._context, user_id, logged, turn_input, live).build()
        if sum(one == user_id for one, _ in tuple(self._replays)) >= AT_ONCE:
            raise LimitReached(f"{AT_ONCE} of your replays are running: wait until one has ended")
        if self._context.abandoned.is_full:
            most = self._context.limits.blocked_loops
            raise LimitReached(
                f"more than {most} blocked threads have not returned (blocked_loops = {most}): no replay is started"
                " until some return; find what blocks in the log, or restart Roost"
            )
        host, played = self._context.host, self._context.host.pending()
        replayers: builtins.list[Replayer] = []
        left = False

        async def main(loop: Loop) -> None:
            replayer = Replayer(
                self._context,
                loop,
                logged,
                turn,
                steered,
                self._brain_context(user_id, logged, turn_input),
                until,
                live,
            )
            replayers.append(replayer)
            if not left:
                played.set(await replayer.play(seconds))

        def ended(_: Loop, error: BaseException | None) -> None:
            played.fail(error or Conflict("the replay was stopped"))

        loop: Loop | None = None
        self._replays.add(mine := (user_id, host.new_id("replay")))
        try:
            loop = host.start_loop("roost-replay", main, ended)
            if not await played.within(seconds + self._context.limits.silent_loop):
                raise Conflict(
                    f"the replay did not end within {seconds:g} seconds, since its brain blocks its thread:"
                    " find what blocks in the brain, and await it"
                )
            result: Replay = await played
            return result
        finally:
            left = True  # the caller may have been cancelled
            self._replays.discard(mine)
            if loop is not None:
                for replayer in replayers:
                    loop.call(replayer.abort)
                if await loop.over.within(TO_END):
                    loop.join()
                else:
                    self._context.abandoned.add(loop)

    def _brain_context(self, user_id: str, logged: StoredRun, turn_input: dict[str, Any]) -> RecordedBrainContext:
        run = logged.run
        if run.talk_session_id is not None:
            place = ContextKey(run.talk_session_id, "", user_id)
        else:
            place = ContextKey(f"{user_id}/{run.agent_id}", turn_input.get("lane", ""), user_id)
        return RecordedBrainContext(self._context, place, run.run_id)

    async def _logged(self, user_id: str, run_id: str, *, for_replay: bool = False) -> StoredRun:
        checks.name(user_id, "the user id")
        checks.name(run_id, "the run id")
        return await self._context.store.read(run_history.entry, user_id, run_id, for_replay)
