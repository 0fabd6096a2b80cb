"""Awake agents of all nodes of a cluster: what the store does not have, because it is in the RAM of one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from roost.core.agents.agent import Agent, State
from roost.runtime.cluster.membership import Membership
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql import held

PATIENCE = 0.5
"""Seconds that other nodes have to answer; the rest is shown as it is in the store."""
SILENT = 5.0
"""Seconds for which a node that has not answered is not asked again."""
PIECE = 500
"""Agents per question."""

CurrentWork = tuple[str, str, str, str, float]
"""Run, envelope, kind, lane, and the time of its start."""


@dataclass(frozen=True, slots=True)
class LiveAgent:
    """An awake agent, as its node sees it."""

    state: State
    works: tuple[CurrentWork, ...]
    is_placed: bool
    """It has a slot, and a thread."""
    is_stuck: bool
    heartbeat: float | None
    turn_state: str | None = None
    """Its `turn.state`, if it was asked for."""


class LiveAgents:
    """Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher, membership: Membership | None) -> None:
        self._context = context
        self._dispatcher = dispatcher
        self._membership = membership
        self._silent: dict[str, float] = {}
        """Nodes that have not answered, and until when they are not asked."""
        if membership is not None:
            membership.mesh.answerers["live_agents"] = self._answer

    def knows(self, profile: str) -> bool:
        """Return whether agents with a profile can run on any node."""
        nodes = () if self._membership is None else self._membership.nodes
        return self._dispatcher.knows(profile) or any(profile in node.profiles for node in nodes)

    async def of(self, agents: Iterable[Agent], *, with_state: bool = False) -> Mapping[str, LiveAgent]:
        """Return those of the agents that are awake on any node, by address."""
        addresses = [f"{agent.user_id}/{agent.agent_id}" for agent in agents]
        found = {address: live for address in addresses if (live := self._here(address, with_state)) is not None}
        rest = [address for address in addresses if address not in found]
        if rest and self._membership is not None and self._membership.mesh.is_up:
            found |= await self._elsewhere(self._membership, rest, with_state)
        return found

    async def _elsewhere(
        self, membership: Membership, addresses: Collection[str], with_state: bool
    ) -> dict[str, LiveAgent]:
        by_node: dict[str, list[str]] = defaultdict(list)
        for address, node in (await self._owners(membership, addresses)).items():
            by_node[node].append(address)
        now = self._context.host.clock.monotonic()
        questions = [
            (node, "live_agents", theirs[start : start + PIECE], with_state)
            for node, theirs in by_node.items()
            if self._silent.get(node, 0.0) <= now
            for start in range(0, len(theirs), PIECE)
        ]
        found: dict[str, LiveAgent] = {}
        answers = await membership.mesh.ask_each(questions, seconds=PATIENCE)
        for (node, *_), answer in zip(questions, answers, strict=True):
            if answer is None:
                self._silent[node] = now + SILENT
            else:
                found |= {address: _of_json(live) for address, live in answer.items()}
        return found

    async def _owners(self, membership: Membership, addresses: Collection[str]) -> dict[str, str]:
        """Return the other nodes that agents belong to."""
        owners = await self._context.store.read(held.nodes_of_agents, addresses)
        return {address: node for address, node in owners.items() if node != membership.node}

    async def _answer(self, addresses: list[str], with_state: bool) -> dict[str, Any]:
        """Answer another node."""
        found = {address: self._here(address, with_state) for address in addresses}
        return {address: astuple(live) for address, live in found.items() if live is not None}

    def _here(self, address: str, with_state: bool) -> LiveAgent | None:
        awake = self._dispatcher.awake(address)
        if awake is None:
            return None
        has_loop = awake.phases.has_loop
        works = tuple(
            (work.run_id, e.envelope_id, str(e.kind), e.lane, work.started)
            for work, e in [(work, work.envelope) for work in list(awake.works)]
        )
        return LiveAgent(
            awake.state_log.state,
            works,
            has_loop and not awake.slot.is_released,
            address in self._dispatcher.stuck,
            self._context.host.clock.now() - awake.loop.silence() if has_loop else None,
            awake.turn_state.text if with_state else None,
        )


def _of_json(value: list[Any]) -> LiveAgent:
    state, works, *rest = value
    return LiveAgent(State(state), tuple(tuple(work) for work in works), *rest)
