"""Counters and histograms of the process."""

from __future__ import annotations

from collections import defaultdict

from roost.core.limits.usage import Usage
from roost.core.monitoring.metrics import Histogram, Labels, Metric, MetricKind

COUNTER, GAUGE, HISTOGRAM = MetricKind.COUNTER, MetricKind.GAUGE, MetricKind.HISTOGRAM


class Metrics:
    """Counters. Those that several threads change are changed with the monitor's lock held."""

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
                "Finished runs.",
                {labels: h.count for labels, h in runs.items()},
                ("kind", "outcome"),
            ),
            Metric(
                "roost_run_seconds",
                HISTOGRAM,
                "Duration of runs in seconds.",
                {labels: h.copy() for labels, h in runs.items()},
                ("kind", "outcome"),
            ),
            Metric(
                "roost_envelopes_posted_total", COUNTER, "Envelopes posted to inboxes.", dict(self.posted), ("kind",)
            ),
            Metric(
                "roost_envelopes_settled_total",
                COUNTER,
                "Verdicts on envelopes of agents.",
                dict(self.settled),
                ("verdict",),
            ),
            Metric(
                "roost_tokens_total",
                COUNTER,
                "Tokens read and written by models.",
                dict(self.tokens),
                ("profile", "direction"),
            ),
            Metric(
                "roost_cost_dollars_total",
                COUNTER,
                "Cost of model calls, where the price is known.",
                dict(self.cost),
                ("profile",),
            ),
            Metric("roost_errors_total", COUNTER, "Failed attempts by fault.", dict(self.faults), ("fault",)),
            one("roost_dead_letters_total", COUNTER, "Dead letters.", self.dead),
            one("roost_worker_restarts_total", COUNTER, "Restarts of workers.", self.restarts),
            Metric(
                "roost_timer_lateness_seconds",
                HISTOGRAM,
                "Lateness of timers in seconds.",
                {(): self.late.copy()},
            ),
        ]


def one(name: str, kind: MetricKind, told: str, value: float) -> Metric:
    return Metric(name, kind, told, {(): value})
