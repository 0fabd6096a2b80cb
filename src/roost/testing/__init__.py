"""For tests of Roost, and of what is built on it."""

from roost.hosts.simulated import Crash, Stuck
from roost.testing.simulation import Simulation

__all__ = ["Crash", "Simulation", "Stuck"]
