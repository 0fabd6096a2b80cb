"""Runs and effects that brains have noted in the ledger of a cluster, which is no part of its database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from tests.cluster.processes import Cluster

THAWED = 0.5
"""Seconds after a freeze that do not count: a moment until the process notices that its lease has ended, or more on a
busy machine."""


@dataclass(frozen=True)
class Freeze:
    """Time for which a process was stopped."""

    pid: int
    start: float
    end: float


@dataclass
class Noted:
    """Run of a brain, from its first to its last beat."""

    address: str
    pid: int
    run_id: str
    start: float
    end: float


@dataclass
class Effects:
    """Effects of a text outside of the cluster."""

    times: list[tuple[float, int, str]]
    """Time, process and key of each effect."""
    recorded: float | None = None
    """Time at which a turn first knew that the effect was recorded."""


def runs(made: Cluster) -> list[Noted]:
    """Return all runs that have beaten, in the order of their beginnings."""
    found: dict[tuple[int, str, str], Noted] = {}
    for when, pid, words in made.ledger():
        if words[0] == "beat":
            _, address, run_id = words
            found.setdefault((pid, address, run_id), Noted(address, pid, run_id, when, when)).end = when
    return list(found.values())


def last_run(made: Cluster) -> str:
    """Return the run that has noted the last beat, without reading the whole ledger."""
    with (made.folder / "ledger.txt").open("rb") as file:
        file.seek(max(0, file.seek(0, 2) - 500))
        return file.read().splitlines()[-1].split()[-1].decode()


def overlap(made: Cluster, freezes: Sequence[Freeze] = ()) -> float:
    """Return for how many seconds an address ran twice at once; see `overlaps`."""
    return max([0.0, *(end - start for _, _, start, end in overlaps(made, freezes))])


def overlaps(made: Cluster, freezes: Sequence[Freeze] = ()) -> list[tuple[Noted, Noted, float, float]]:
    """Return the runs of one address that ran at once, and from when until when, except while one was frozen.

    An agent may run several turns at once in one process: one of them in quarantine, for example.
    """
    by_address: dict[str, list[Noted]] = defaultdict(list)
    for run in runs(made):
        by_address[run.address].append(run)
    return [
        (one, other, start, end)
        for found in by_address.values()
        for one, other in combinations(found, 2)
        if one.pid != other.pid or not one.address.startswith("agent:")
        for start, end in _common(_spans(one, freezes), _spans(other, freezes))
    ]


def effects(made: Cluster) -> dict[str, Effects]:
    """Return the effects of all texts."""
    found: dict[str, Effects] = {}
    for when, pid, words in made.ledger():
        if words[0] == "effect":
            found.setdefault(words[1], Effects([])).times.append((when, pid, words[2]))
        elif words[0] == "recorded" and found[words[1]].recorded is None:
            found[words[1]].recorded = when
    return found


def has_just_thawed(pid: int, when: float, freezes: Iterable[Freeze]) -> bool:
    return any(freeze.pid == pid and freeze.end <= when <= freeze.end + THAWED for freeze in freezes)


def _common(spans: list[tuple[float, float]], others: list[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    for first in spans:
        for second in others:
            start, end = max(first[0], second[0]), min(first[1], second[1])
            if end > start:
                yield start, end


def _spans(run: Noted, freezes: Sequence[Freeze]) -> list[tuple[float, float]]:
    """Return the times of a run at which its process was not frozen."""
    spans = [(run.start, run.end)]
    for freeze in freezes:
        if freeze.pid == run.pid:
            spans = [
                part
                for start, end in spans
                for part in ((start, min(end, freeze.start)), (max(start, freeze.end + THAWED), end))
                if part[0] < part[1]
            ]
    return spans
