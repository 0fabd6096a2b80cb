"""Comparisons: which figure of Roost is held against which one of a peer, and the goal for their ratio."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

AUTOGEN, LANGGRAPH, APSCHEDULER, COMMITS = "autogen", "langgraph", "apscheduler", "sqlite"
SCRIPTS = {
    AUTOGEN: "autogen_memory.py",
    LANGGRAPH: "langgraph_sqlite.py",
    APSCHEDULER: "apscheduler_sqlite.py",
    COMMITS: "sqlite_commits.py",
}
NAMES = {
    AUTOGEN: "AutoGen core, in memory",
    LANGGRAPH: "LangGraph, SQLite",
    APSCHEDULER: "APScheduler, SQLite",
    COMMITS: "one bare SQLite commit",
}
Values = Mapping[str, Sequence[float]]
"""Values of each metric, one for each pair of runs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """`bench` and `metric` are Roost's, `peer_metric` is the peer's. `goal`: for Roost's value divided by that."""

    title: str
    unit: str
    peer: str
    peer_metric: str
    bench: str
    metric: str
    goal: float
    more_is_better: bool = True

    def is_reached(self, ratio: float) -> bool:
        return ratio >= self.goal if self.more_is_better else ratio <= self.goal

    def row(self, roost: Values, peer: Values) -> str:
        """Return a row of the table: both medians, the ratio of the medians, and the range of the pairs' ratios."""
        own, other = roost[self.metric], peer[self.peer_metric]
        ratio = statistics.median(own) / statistics.median(other)
        ratios = [one / two for one, two in zip(own, other, strict=True)]
        sign, mark = "≥" if self.more_is_better else "≤", "" if self.is_reached(ratio) else " (missed)"
        return (
            f"| {self.title} | {NAMES[self.peer]}: {_short(statistics.median(other))} {self.unit}"
            f" | {_short(statistics.median(own))} {self.unit} | **{_short(ratio)} ×** ({_short(min(ratios))} –"
            f" {_short(max(ratios))}) | {sign} {self.goal:g} ×{mark} |"
        )


ALL = (
    Comparison("one-way, two agents", "msg/s", AUTOGEN, "one_way", "one-way", "one_way_two_agents", 2.5),
    Comparison("one-way, among 100 agents", "msg/s", AUTOGEN, "among_100", "one-way-100", "one_way_100_agents", 1.5),
    Comparison("requests, 100 in flight", "/s", AUTOGEN, "in_flight_100", "requests", "requests_100_in_flight", 2.0),
    Comparison("broadcasts to 100 agents", "msg/s", AUTOGEN, "broadcast", "broadcast", "broadcast_100_agents", 1.0),
    Comparison("one request, p50", "ms", COMMITS, "commit", "requests", "request_p50", 4.4, more_is_better=False),
    Comparison("turns, 20 at once", "/s", LANGGRAPH, "turns", "turns", "fresh_talks_20_at_once", 14.0),
    Comparison(
        "first chunk, p50", "ms", LANGGRAPH, "first_chunk", "first-chunk", "first_chunk_p50", 0.2, more_is_better=False
    ),
    Comparison(
        "turn 1,000 of a talk", "ms", LANGGRAPH, "turn_1000", "long-talk", "turn_1000", 0.1, more_is_better=False
    ),
    Comparison("turn 1,000 of a talk", "ms", COMMITS, "commit", "long-talk", "turn_1000", 4.0, more_is_better=False),
    Comparison(
        "10,000 timers due at once: lateness p99 of the commit, beside that of the call",
        "s",
        APSCHEDULER,
        "timers_late",
        "timers",
        "timers_late_p99",
        0.1,
        more_is_better=False,
    ),
    Comparison(
        "the same, until all are handled",
        "s",
        APSCHEDULER,
        "timers_handled",
        "timers",
        "timers_all_handled",
        0.1,
        more_is_better=False,
    ),
)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
