"""Compares what a node of a cluster holds with the store.

Other nodes stop, change and delete talks and agents that are awake here, and notify this node. A notice may be lost:
what differs from the store in two checks in a row is then found here. What differs in one check only may be a commit
of this node that it is about to follow. A check compares a limited number, and the next one continues after them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from roost.core.agents.agent import AgentConfig, State
from roost.core.talks.runs import StopReason
from roost.runtime.agents.activation import Activation
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.runtime.talks.live_talk import LiveTalk
from roost.stores.sql import held
from roost.stores.sql.held import HeldAgent, HeldTalk

MOST = 1_000
"""Talks, agents and envelopes that are compared in one check, of each."""

T = TypeVar("T")
Difference = tuple[str, str, object]
"""Name of what differs, the kind of difference, and the value in the store."""
Repair = Callable[[], None]


class MissedChanges:
    """Called by the supervisor."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._placement = dispatcher.placement
        self._before: set[Difference] = set()
        self._talks_share, self._agents_share, self._envelopes_share = _Share(), _Share(), _Share()

    async def check(self) -> None:
        """Read rows of what is held here, and apply the differences that the last check of them has found, too."""
        found = dict([*await self._talks(), *await self._agents(), *await self._envelopes()])
        for difference, repair in found.items():
            if difference in self._before:
                repair()
        shares = (self._talks_share, self._agents_share, self._envelopes_share)
        unchecked = {one for one in self._before if any(one[0] in share.left_out for share in shares)}
        self._before = unchecked | set(found)

    # --- talks -----------------------------------------------------------------------------------

    async def _talks(self) -> list[tuple[Difference, Repair]]:
        lives = self._talks_share.of(self._dispatcher.live_talks.in_use(self._placement.talk_ids()))
        if not lives:
            return []
        stored = await self._context.store.read(held.talks, list(lives))
        return [one for talk_id, live in lives.items() for one in self._talk(live, stored.get(talk_id))]

    def _talk(self, live: LiveTalk, stored: HeldTalk | None) -> Iterator[tuple[Difference, Repair]]:
        talk_id = live.talk_id
        run = self._placement.run_of(talk_id)
        if stored is None:
            yield (talk_id, "deleted", None), lambda: self._delete(talk_id)
            return
        if run is not None and run.epoch < stored.epoch and not run.fenced:
            yield (talk_id, "superseded", stored.epoch), lambda: self._supersede(live, stored)
        elif live.revision < stored.revision:
            yield (talk_id, "changed", stored.revision), lambda: self._refresh(live, stored)
        elif live.settings != stored.settings:
            yield (talk_id, "configured", str(stored.settings)), live.miss

    def _delete(self, talk_id: str) -> None:
        self._placement.stop(talk_id, StopReason.DELETE, self._context.host.clock.now())
        self._dispatcher.live_talks.forget(talk_id)

    def _supersede(self, live: LiveTalk, stored: HeldTalk) -> None:
        """Stop a run that can no longer write, since another node has stopped it or sent a message."""
        why = StopReason.INTERRUPT if stored.waiting else StopReason.STOP
        self._placement.stop(live.talk_id, why, self._context.host.clock.now())
        self._refresh(live, stored)

    def _refresh(self, live: LiveTalk, stored: HeldTalk) -> None:
        live.miss()
        if stored.waiting and self._placement.holds(live.talk_id):
            self._dispatcher.notifier.deliver_talk(live.talk_id, live.owner, None, stored.agent)

    # --- agents ----------------------------------------------------------------------------------

    async def _agents(self) -> list[tuple[Difference, Repair]]:
        awake = self._agents_share.of({one.address: one for one in self._dispatcher.all()})
        if not awake:
            return []
        stored = await self._context.store.read(held.agents, list(awake))
        return [one for address, activation in awake.items() for one in self._agent(activation, stored.get(address))]

    def _agent(self, activation: Activation, stored: HeldAgent | None) -> Iterator[tuple[Difference, Repair]]:
        address = activation.address
        if stored is None or stored.epoch > activation.epoch or stored.state == State.STOPPED:
            yield (address, "stopped", stored and stored.epoch), lambda: self._stop(activation)
            return
        if stored.paused or stored.state == State.SLEEPING:
            yield (address, "rests", stored.epoch), lambda: activation.call(activation.drain)
        if AgentConfig.from_json(stored.config) != activation.config:
            yield (address, "configured", stored.config), lambda: self._configure(activation, stored.config)

    def _stop(self, activation: Activation) -> None:
        if self._dispatcher.awake(activation.address) is activation:
            self._dispatcher.stop_agent(activation.address)
            self._dispatcher.notifier.look(activation.address)  # it may have been started again

    def _configure(self, activation: Activation, config: str) -> None:
        activation.config = AgentConfig.from_json(config)
        activation.call(activation.run_ready)  # it may have a higher limit of concurrent tasks

    async def _envelopes(self) -> list[tuple[Difference, Repair]]:
        """Find tasks that run here and were cancelled."""
        works = self._envelopes_share.of(
            {
                work.envelope.envelope_id: activation
                for activation in self._dispatcher.all()
                for work in activation.works
            }
        )
        if not works:
            return []
        stored = await self._context.store.read(held.envelopes, list(works))
        return [
            ((envelope_id, "cancelled", None), _cancel(activation, envelope_id))
            for envelope_id, activation in works.items()
            if envelope_id not in stored
        ]


class _Share:
    """Chooses what the next check compares: up to `MOST`, after those of the last check, in the order of their ids."""

    def __init__(self) -> None:
        self._last = ""
        self.left_out: set[str] = set()

    def of(self, held: Mapping[str, T]) -> Mapping[str, T]:
        if len(held) <= MOST:
            self.left_out = set()
            return held
        ids = sorted(held)
        start = bisect_right(ids, self._last)
        chosen = [*ids[start:], *ids[:start]][:MOST]
        self._last = chosen[-1]
        self.left_out = held.keys() - set(chosen)
        return {one: held[one] for one in chosen}


def _cancel(activation: Activation, envelope_id: str) -> Repair:
    return lambda: activation.call(lambda: activation.cancel(envelope_id))
