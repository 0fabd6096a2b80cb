"""Counters and histograms of the process."""

from __future__ import annotations

from collections import defaultdict

from roost.core.limits.usage import Usage
from roost.core.monitoring.metrics import Histogram, Labels, Metric, MetricKind

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM


class Metrics:
    """Plain numbers. Those that several threads add to are added to with the monitor's lock held."""

    def __init__(self) -> None:
        self.runs: dict[Labels, Histogram] = {}
        """Seconds that runs took, by kind and outcome."""
        self.posted: dict[Labels, float] = defaultdict(float)
        self.settled: dict[Labels, float] = defaultdict(float)
        self.faults: dict[Labels, float] = defaultdict(float)
        self.tokens: dict[Labels, float] = defaultdict(float)
        self.cost: dict[Labels, float] = defaultdict(float)
        self.late = Histogram()
        self.dead = 0
        self.restarts = 0

    def ran(self, kind: str, outcome: str, seconds: float) -> None:
        known = self.runs.get((kind, outcome))
        if known is None:
            known = self.runs[kind, outcome] = Histogram()
        known.add(seconds)

    def spent(self, profile: str, usage: Usage) -> None:
        if usage.tokens:
            self.tokens[profile, "input"] += usage.input_tokens
            self.tokens[profile, "output"] += usage.output_tokens
            if usage.cost is not None:
                self.cost[(profile,)] += usage.cost

    def counted(self) -> list[Metric]:
        runs = dict(self.runs)
        return [
            Metric(
                "roost_runs_total",
                COUNTER,
                "Runs that are over.",
                {labels: h.count for labels, h in runs.items()},
                ("kind", "outcome"),
            ),
            Metric(
                "roost_run_seconds",
                HISTOGRAM,
                "How long runs took.",
                {labels: h.copy() for labels, h in runs.items()},
                ("kind", "outcome"),
            ),
            Metric("roost_envelopes_posted_total", COUNTER, "What was put into inboxes.", dict(self.posted), ("kind",)),
            Metric(
                "roost_envelopes_settled_total",
                COUNTER,
                "What became of what agents were given.",
                dict(self.settled),
                ("verdict",),
            ),
            Metric(
                "roost_tokens_total",
                COUNTER,
                "Tokens that models read and wrote.",
                dict(self.tokens),
                ("profile", "direction"),
            ),
            Metric(
                "roost_cost_dollars_total",
                COUNTER,
                "What that cost, where the price is known.",
                dict(self.cost),
                ("profile",),
            ),
            Metric("roost_errors_total", COUNTER, "Tries that failed, by their fault.", dict(self.faults), ("fault",)),
            one("roost_dead_letters_total", COUNTER, "What could not be handled for good.", self.dead),
            one("roost_worker_restarts_total", COUNTER, "Workers that were started again.", self.restarts),
            Metric(
                "roost_timer_lateness_seconds",
                HISTOGRAM,
                "How long after their time timers were fired.",
                {(): self.late.copy()},
            ),
        ]


def one(name: str, kind: MetricKind, told: str, value: float) -> Metric:
    return Metric(name, kind, told, {(): value})
