"""Runs: list, show and replay finished runs."""

from __future__ import annotations

import builtins
from typing import Any

from roost.core.journal.run_history import Replay, Run, RunEntry
from roost.core.memory.brain_context import ContextKey
from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.core.values.addresses import of_agent
from roost.errors import Conflict, Invalid, LimitReached, NotFound
from roost.ports import Loop
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.agents import AFTER_ALL_IDS
from roost.runtime.replays.rebuild import TurnBuilder
from roost.runtime.replays.replay import RecordedBrainContext, Replayer, recorded_input
from roost.stores.sql import run_history
from roost.stores.sql.run_history import StoredRun

AT_ONCE = 8
"""Maximum number of concurrent replays of one user; each has a thread."""
LONGEST = 3_600.0
"""Maximum seconds of a replay."""


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
        limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[Run]:
        """Return finished runs, newest first: of a talk, of an agent, or all.

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
        named = None if address is None else str(address.agent_id)
        return await self._context.store.read(run_history.listed, user_id, talk, named, limit, last)

    async def get(self, user_id: str, run_id: str) -> RunEntry:
        """Return a run with its answer and its steps in order, including those of earlier attempts."""
        logged = await self._logged(user_id, run_id)
        turn_input = checks.normalized(recorded_input(logged))
        return RunEntry(
            logged.run, logged.text, logged.steps, turn_input, logged.usage, logged.refused, logged.traceback
        )

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
        not recorded or come after `until`; otherwise the replay ends there.
        """
        if until is not None:
            checks.count(until, "`until`", least=0, most=1_000_000)
        checks.flag(live, "`live`")
        if (seconds := checks.seconds(within, "`within`")) > LONGEST:
            raise Invalid(f"`within` must be at most {LONGEST:g} seconds, not {checks.shown(within)}")
        logged = await self._logged(user_id, run_id)
        turn_input = recorded_input(logged)
        turn, steered = await TurnBuilder(self._context, user_id, logged, turn_input).build()
        if sum(one == user_id for one, _ in tuple(self._replays)) >= AT_ONCE:
            raise LimitReached(f"{AT_ONCE} of your replays are running: wait until one has ended")
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

        self._replays.add(mine := (user_id, host.new_id("replay")))
        loop = host.start_loop("roost-replay", main, ended)
        try:
            result: Replay = await played
            return result
        finally:
            left = True  # the caller may have been cancelled
            self._replays.discard(mine)
            for replayer in replayers:
                loop.call(replayer.abort)
            if await loop.over.within(1.0):
                loop.join()

    def _brain_context(self, user_id: str, logged: StoredRun, turn_input: dict[str, Any]) -> RecordedBrainContext:
        run = logged.run
        if run.talk_session_id is not None:
            place = ContextKey(run.talk_session_id, "", user_id)
        else:
            place = ContextKey(f"{user_id}/{run.agent_id}", turn_input.get("lane", ""), user_id)
        return RecordedBrainContext(self._context, place, run.run_id)

    async def _logged(self, user_id: str, run_id: str) -> StoredRun:
        checks.name(user_id, "the user id")
        checks.name(run_id, "the run id")
        return await self._context.store.read(run_history.entry, user_id, run_id)
