"""Roosts for tests: on real threads and a temporary file, or simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryDirectory

from roost.brains.profiles import ProfileRegistry
from roost.core.limits.limits import Limits
from roost.ports import Brain, Tool
from roost.runtime.roost import Roost
from roost.service import AgentService, AsyncAgentService
from roost.testing.clock import Clock
from roost.testing.faults import Faults
from roost.testing.simulation import Simulation
from roost.wiring import open_roost

QUICK = Limits(drain=0.5, stop_patience=0.3)
"""Default limits, with shorter timeouts for closing."""


@contextmanager
def roost(
    brain: Brain | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    limits: Limits = QUICK,
    tools: Sequence[Tool] = (),
) -> Iterator[AgentService]:
    """Open a service on real threads and a temporary file, without settings. `brain` is the default profile."""
    with (
        TemporaryDirectory(prefix="roost-testing-") as folder,
        AgentService(_open(folder, brain, brains, limits, tools)) as it,
    ):
        yield it


@asynccontextmanager
async def aroost(
    brain: Brain | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    limits: Limits = QUICK,
    tools: Sequence[Tool] = (),
) -> AsyncIterator[AsyncAgentService]:
    """Open the same service with coroutines."""
    with TemporaryDirectory(prefix="roost-testing-") as folder:
        async with AsyncAgentService(_open(folder, brain, brains, limits, tools)) as service:
            yield service


@contextmanager
def simulated(
    brain: Brain | None = None,
    *,
    brains: Mapping[str, Brain] | None = None,
    seed: int = 0,
    faults: Faults | None = None,
    clock: Clock | None = None,
    limits: Limits = QUICK,
    tools: Sequence[Tool] = (),
) -> Iterator[Simulation]:
    """Start a simulation; `simulation.run(simulation.service.…)` calls its methods."""
    with Simulation(seed=seed, faults=faults, clock=clock) as simulation:
        simulation.start(all_of(brain, brains), limits, tools)
        yield simulation


def all_of(brain: Brain | None, brains: Mapping[str, Brain] | None) -> dict[str, Brain]:
    return {**({} if brain is None else {"brain": brain}), **(brains or {})}


def _open(
    folder: str, brain: Brain | None, brains: Mapping[str, Brain] | None, limits: Limits, tools: Sequence[Tool]
) -> Roost:
    return open_roost(f"sqlite:///{folder}/roost.db", ProfileRegistry(all_of(brain, brains)), limits, tools=tools)
