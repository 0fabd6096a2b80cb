"""A Roost in one line: on real threads and a file that is removed afterwards, or simulated."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryDirectory

from roost.brains.profiles import Shelf
from roost.core.limits import Limits
from roost.ports import Brain
from roost.runtime.roost import Roost
from roost.service import AgentService, AsyncAgentService
from roost.testing.clock import Clock
from roost.testing.faults import Faults
from roost.testing.simulation import Simulation
from roost.wiring import open_roost

QUICK = Limits(drain=0.5, stop_patience=0.3)
"""The usual bounds, but for the time that closing may take."""


@contextmanager
def roost(
    brain: Brain | None = None, *, brains: Mapping[str, Brain] | None = None, limits: Limits = QUICK
) -> Iterator[AgentService]:
    """A service on real threads and a scratch file; settings are not read. `brain` is the default profile, `brain`."""
    with (
        TemporaryDirectory(prefix="roost-testing-") as folder,
        AgentService(_made(folder, brain, brains, limits)) as it,
    ):
        yield it


@asynccontextmanager
async def aroost(
    brain: Brain | None = None, *, brains: Mapping[str, Brain] | None = None, limits: Limits = QUICK
) -> AsyncIterator[AsyncAgentService]:
    """The same with coroutines."""
    with TemporaryDirectory(prefix="roost-testing-") as folder:
        async with AsyncAgentService(_made(folder, brain, brains, limits)) as service:
            yield service


@contextmanager
def simulated(
    brain: Brain | None = None, *, brains: Mapping[str, Brain] | None = None, seed: int = 0,
    faults: Faults | None = None, clock: Clock | None = None, limits: Limits = QUICK,
) -> Iterator[Simulation]:  # fmt: skip
    """A simulation that was started; `simulation.run(simulation.service.…)` calls its methods."""
    with Simulation(seed=seed, faults=faults, clock=clock) as simulation:
        simulation.start(all_of(brain, brains), limits)
        yield simulation


def all_of(brain: Brain | None, brains: Mapping[str, Brain] | None) -> dict[str, Brain]:
    return {**({} if brain is None else {"brain": brain}), **(brains or {})}


def _made(folder: str, brain: Brain | None, brains: Mapping[str, Brain] | None, limits: Limits) -> Roost:
    return open_roost(f"sqlite:///{folder}/roost.db", Shelf(all_of(brain, brains)), limits)
