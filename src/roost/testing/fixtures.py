"""Fixtures for pytest. In your `conftest.py`: `pytest_plugins = ["roost.testing.fixtures"]`.

def test_it_greets(make_roost):
    service = make_roost(greeter)
    ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import TypeAlias

import pytest

from roost.service import AgentService
from roost.testing.roosts import roost, simulated
from roost.testing.simulation import Simulation

MakeRoost: TypeAlias = Callable[..., AgentService]
MakeSimulation: TypeAlias = Callable[..., Simulation]


@pytest.fixture
def make_roost() -> Iterator[MakeRoost]:
    """Open Roosts on real threads, with the options of `roost.testing.roost`; closed after the test."""
    with ExitStack() as opened:
        yield lambda *args, **options: opened.enter_context(roost(*args, **options))


@pytest.fixture
def make_simulation() -> Iterator[MakeSimulation]:
    """Start simulations, with the options of `roost.testing.simulated`; closed after the test."""
    with ExitStack() as opened:
        yield lambda *args, **options: opened.enter_context(simulated(*args, **options))
