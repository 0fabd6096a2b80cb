"""Test kit for Roost, and for applications built on it: see the guide *Test what you build*."""

from roost.hosts.simulated import Crash, Stuck
from roost.testing.brains import Given, Reply, Script, script, wait
from roost.testing.clock import Clock
from roost.testing.cluster.faults import ClusterFaults
from roost.testing.cluster.invariants import all_quiet, cluster_invariants, one_at_a_time, talks_gapless
from roost.testing.cluster.simulation import ClusterSimulation
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
from roost.testing.webhooks import FakeReceiver, ReceivedRequest

__all__ = [
    "Clock",
    "ClusterFaults",
    "ClusterSimulation",
    "Crash",
    "End",
    "FakeReceiver",
    "Fate",
    "Faults",
    "Given",
    "Network",
    "ReceivedRequest",
    "Reply",
    "Script",
    "Simulation",
    "Stuck",
    "aeventually",
    "all_ended",
    "all_invariants",
    "all_quiet",
    "aroost",
    "check_game",
    "cluster_invariants",
    "eventually",
    "fates",
    "in_order",
    "insist",
    "meeting_views",
    "meetings_agree",
    "nothing_lost",
    "nothing_twice",
    "one_at_a_time",
    "roost",
    "script",
    "simulated",
    "talks_gapless",
    "wait",
]
