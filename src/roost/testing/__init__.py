"""Test kit for Roost, and for applications built on it: see the guide *Test what you build*."""

from roost.hosts.simulated import Crash, Stuck
from roost.testing.brains import Given, Reply, Script, script, wait
from roost.testing.clock import Clock
from roost.testing.faults import Faults
from roost.testing.games import check_game
from roost.testing.invariants import (
    End,
    Fate,
    all_ended,
    all_invariants,
    fates,
    in_order,
    meeting_views,
    meetings_agree,
    nothing_lost,
    nothing_twice,
)
from roost.testing.network import Network
from roost.testing.polling import aeventually, eventually, insist
from roost.testing.roosts import aroost, roost, simulated
from roost.testing.simulation import Simulation

__all__ = [
    "Clock",
    "Crash",
    "End",
    "Fate",
    "Faults",
    "Given",
    "Network",
    "Reply",
    "Script",
    "Simulation",
    "Stuck",
    "aeventually",
    "all_ended",
    "all_invariants",
    "aroost",
    "check_game",
    "eventually",
    "fates",
    "in_order",
    "insist",
    "meeting_views",
    "meetings_agree",
    "nothing_lost",
    "nothing_twice",
    "roost",
    "script",
    "simulated",
    "wait",
]
