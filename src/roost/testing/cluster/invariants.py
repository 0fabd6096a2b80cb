"""Invariants of every simulated cluster, whatever faults it had: call them after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from roost.runtime.cluster.membership import WATCH
from roost.testing.cluster.simulation import LEFT_BEHIND, ClusterSimulation, Execution
from roost.testing.invariants import hold, nothing_lost, nothing_twice

THAWED = WATCH + 0.05
"""Seconds for which a node that thaws may run its own code before it notices that its lease has ended."""
Span = tuple[float, float]


def one_at_a_time(simulation: ClusterSimulation) -> None:
    """Check that no two nodes ran a brain for the same agent or talk at the same time."""
    by_address: dict[str, list[Execution]] = defaultdict(list)
    for execution in simulation.executions:
        by_address[execution.address].append(execution)
    wrong = [
        f"{address} on {one.life.name} and {other.life.name} from {start:.3f} to {end:.3f} s"
        for address, found in by_address.items()
        for one, other in combinations(found, 2)
        if one.life is not other.life
        for start, end in _overlaps(simulation, one, other)
    ]
    hold(simulation, not wrong, "these ran on two nodes at once", wrong)


def talks_gapless(simulation: ClusterSimulation) -> None:
    """Check that the messages of each talk are numbered without gaps, and that none of a person is there twice."""
    numbers: dict[str, list[int]] = defaultdict(list)
    said: dict[tuple[str, str], int] = defaultdict(int)
    for talk_id, number, sender, content in simulation.rows(
        "SELECT talk_id, seq, sender, content FROM messages ORDER BY talk_id, seq"
    ):
        numbers[talk_id].append(number)
        said[talk_id, content] += sender == "user"
    gaps = [f"{talk_id}: {found}" for talk_id, found in numbers.items() if found != [*range(1, len(found) + 1)]]
    hold(simulation, not gaps, "these talks have gaps", gaps)
    twice = [key for key, count in said.items() if count > 1]
    hold(simulation, not twice, "these messages are there twice", twice)


def all_quiet(simulation: ClusterSimulation) -> None:
    """Check that no work is left: no envelope that could run, no open answer, and no work of a node that is gone."""
    left = [
        *simulation.rows("SELECT 'envelope', envelope_id FROM inbox WHERE status <> 'parked'"),
        *simulation.rows("SELECT 'talk', talk_id FROM talks WHERE waiting > 0 OR answer_seq > 0"),
    ]
    hold(simulation, not left, "this work is left", left)
    owned = simulation.rows(LEFT_BEHIND)
    hold(simulation, not owned, "these belong to nodes that are gone", owned)


def cluster_invariants(simulation: ClusterSimulation) -> None:
    """Check all invariants of a cluster."""
    nothing_lost(simulation)
    nothing_twice(simulation)
    one_at_a_time(simulation)
    talks_gapless(simulation)
    all_quiet(simulation)


def _overlaps(simulation: ClusterSimulation, one: Execution, other: Execution) -> Iterator[Span]:
    now = simulation.clock.monotonic()
    for first in _spans(one, now):
        for second in _spans(other, now):
            start, end = max(first[0], second[0]), min(first[1], second[1])
            if end - start > 1e-6:
                yield start, end


def _spans(execution: Execution, now: float) -> list[Span]:
    """Return the times of an execution at which its machine was not frozen."""
    spans = [(execution.start, now if execution.end is None else execution.end)]
    for start, end in execution.life.machine.freezes:
        spans = [part for span in spans for part in _without(span, start, end + THAWED)]
    return spans


def _without(span: Span, start: float, end: float) -> list[Span]:
    parts = ((span[0], min(span[1], start)), (max(span[0], end), span[1]))
    return [part for part in parts if part[0] < part[1]]
