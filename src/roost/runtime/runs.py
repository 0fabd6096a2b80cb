"""Runs: what was done, looked at and run again."""

from __future__ import annotations

import builtins
import json
from dataclasses import replace
from typing import Any

from roost.core import checks
from roost.core.addresses import of_agent
from roost.core.diary import Place
from roost.core.envelopes import Kind
from roost.core.messages import MOST, PAGE, Message, Status, at
from roost.core.runbook import Replay, Run, RunEntry
from roost.errors import Conflict, Invalid, LimitReached, NotFound
from roost.ports import Logged, Loop, Profile, Turn
from roost.runtime.agents import LAST
from roost.runtime.replay import OldDiary, Replayer, recorded_given
from roost.runtime.shop import Shop

AT_ONCE = 8
"""Replays of one user under way, each of which has a thread."""
LONGEST = 3_600.0
"""Seconds that a replay may take."""


class Runs:
    """Coroutines in which nothing but pendings is awaited, so that plain threads can drive them."""

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._ops = shop.statements.runbook
        self._replays: set[tuple[str, str]] = set()
        """Those under way: whose, and a name of each."""

    async def list(
        self, user_id: str, *, talk: str | None = None, agent: str | None = None, limit: int = PAGE,
        before: str | None = None,
    ) -> builtins.list[Run]:  # fmt: skip
        """Runs that are over, newest first: of a talk, of an agent, or all; `before` is the last of the page before."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        if talk is not None and agent is not None:
            raise Invalid("name a talk or an agent, not both")
        if talk is not None:
            checks.name(talk, "the talk session id")
        address = None if agent is None else of_agent(agent, user_id)
        if address is not None and address.user_id != user_id:
            raise NotFound(f"there is no agent {agent!r:.80}: it was deleted, or it never existed")
        last = checks.place(before, "`before`") or LAST
        named = None if address is None else str(address.agent_id)
        return await self._shop.store.read(self._ops.listed, user_id, talk, named, limit, last)

    async def get(self, user_id: str, run_id: str) -> RunEntry:
        """A run with what it said, and its steps in order: those of the tries before it too."""
        logged = await self._logged(user_id, run_id)
        return RunEntry(logged.run, logged.text, logged.steps, checks.tame(recorded_given(logged)))

    async def replay(
        self, user_id: str, run_id: str, *, until: int | None = None, live: bool = False,
        within: float = 60.0,
    ) -> Replay:  # fmt: skip
        """Run it again from its journal, and compare what it says; nothing is sent and nothing is written.

        With `until` it ends after so many steps, and always `within` so many seconds. `live`: what is not on record,
        and what comes after `until`, is done; else the replay ends there.
        """
        if until is not None:
            checks.count(until, "`until`", least=0, most=1_000_000)
        checks.flag(live, "`live`")
        if (seconds := checks.seconds(within, "`within`")) > LONGEST:
            raise Invalid(f"`within` must be at most {LONGEST:g} seconds, not {checks.shown(within)}")
        logged = await self._logged(user_id, run_id)
        given = recorded_given(logged)
        if not given or given.get("state_is_missing"):
            raise Conflict(f"what the run {run_id!r:.80} was given is not on record: it cannot be replayed")
        turn, steered = await self._turn(user_id, logged, given)
        if sum(one == user_id for one, _ in tuple(self._replays)) >= AT_ONCE:
            raise LimitReached(f"{AT_ONCE} replays of yours are under way: wait until one of them is over")
        host, played = self._shop.host, self._shop.host.pending()
        replayers: builtins.list[Replayer] = []
        left = False

        async def main(loop: Loop) -> None:
            replayer = Replayer(
                self._shop, loop, logged, turn, steered, self._diary(user_id, logged, given), until, live
            )
            replayers.append(replayer)
            if not left:
                played.set(await replayer.play(seconds))

        def ended(_: Loop, error: BaseException | None) -> None:
            played.fail(error or Conflict("the replay was cut off"))

        self._replays.add(mine := (user_id, host.new_id("replay")))
        loop = host.start_loop("roost-replay", main, ended)
        try:
            result: Replay = await played
            return result
        finally:
            left = True  # whoever asked may have gone before it is over
            self._replays.discard(mine)
            for replayer in replayers:
                loop.call(replayer.cut_off)
            if await loop.over.within(1.0):
                loop.join()

    def _diary(self, user_id: str, logged: Logged, given: dict[str, Any]) -> OldDiary:
        run = logged.run
        if run.talk_session_id is not None:
            place = Place(run.talk_session_id, "", user_id)
        else:
            place = Place(f"{user_id}/{run.agent_id}", given.get("lane", ""), user_id)
        return OldDiary(self._shop, place, run.run_id)

    async def _logged(self, user_id: str, run_id: str) -> Logged:
        checks.name(user_id, "the user id")
        checks.name(run_id, "the run id")
        return await self._shop.store.read(self._ops.entry, user_id, run_id)

    # --- the turn as it was ------------------------------------------------------------------------

    async def _turn(
        self, user_id: str, logged: Logged, given: dict[str, Any]
    ) -> tuple[Turn, dict[int, tuple[Message, ...]]]:  # fmt: skip
        run = logged.run
        profile = self._profile(given)
        state = json.loads(given.get("state") or "{}")
        if run.talk_session_id is not None:
            return await self._talk_turn(user_id, run, given, profile, state)
        if run.kind == Kind.MEETING:
            raise Conflict("a turn of a meeting cannot be replayed: what it saw is the meeting itself")
        source = await self._shop.store.read(self._ops.source, run, logged.envelope_id)
        if source is None:
            raise Conflict(f"what the run {run.run_id!r} was about is not kept any more: it cannot be replayed")
        found = json.loads(source)
        message = Message(1, found["sender"], found["text"], Status.COMPLETE, at(given.get("created", 0.0)))
        turn = Turn(
            run.kind, found["text"], (message,), (), profile, user_id, "", run.run_id, state, None,
            agent_id=run.agent_id, sender=found["sender"], subject=found.get("subject", ""), data=found.get("data"),
            attempt=given.get("attempt", 1),
        )  # fmt: skip
        return turn, {}

    async def _talk_turn(
        self, user_id: str, run: Run, given: dict[str, Any], profile: Profile, state: dict[str, Any]
    ) -> tuple[Turn, dict[int, tuple[Message, ...]]]:
        talk_id = str(run.talk_session_id)
        steered = dict(given.get("steered", []))
        later = {seq for seqs in steered.values() for seq in seqs}
        new = [seq for seq in given.get("messages", []) if seq not in later]
        last = max([given.get("history", 0), *new, *later])
        known = {m.seq: m for m in await self._messages(user_id, talk_id, last)}
        if any(seq not in known for seq in (*new, *later)):
            raise Conflict(f"what the run {run.run_id!r} was about is not kept any more: it cannot be replayed")
        messages = [known[seq] for seq in new]
        shown = [m for m in known.values() if m.status is not Status.WITHDRAWN]
        history = [m for m in shown if m.seq <= given.get("history", 0) and m.seq not in new]
        text = "\n".join(m.content for m in messages)
        turn = Turn(
            "talk", text, tuple(messages), history, profile, user_id, talk_id, run.run_id, state, None,
            agent_id=given.get("agent"), sender=f"user:{user_id}",
        )  # fmt: skip
        return turn, {look: tuple(known[seq] for seq in seqs) for look, seqs in steered.items()}

    async def _messages(self, user_id: str, talk_id: str, last: int) -> builtins.list[Message]:
        found: builtins.list[Message] = []
        first = last + 1
        while first > 1:
            page = await self._shop.store.read(
                self._shop.statements.messages.before, user_id, talk_id, first, 10_000
            )  # fmt: skip
            if not page:
                break
            found, first = [*page, *found], page[0].seq
        return found

    def _profile(self, given: dict[str, Any]) -> Profile:
        try:
            profile = self._shop.brains.profile(given["profile"])
        except Invalid as error:
            raise Conflict(f"the profile {given['profile']!r} does not exist any more: {error}") from error
        return replace(profile.told(given.get("options", {})), tokens_per_day=None)
