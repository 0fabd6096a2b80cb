"""What is counted while things happen, and what is looked up when someone asks for the numbers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from roost.core.metrics import Histogram, Labels, Metric, MetricKind
from roost.core.usage import Usage

if TYPE_CHECKING:
    from roost.runtime.shop import Shop

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

    def gathered(self, shop: Shop) -> dict[str, Metric]:
        found = [*self._counted(), *_looked_up(shop)]
        return {metric.name: metric for metric in found}

    def _counted(self) -> list[Metric]:
        runs = dict(self.runs)
        return [
            Metric(
                "roost_runs_total", COUNTER, "Runs that are over.",
                {labels: h.count for labels, h in runs.items()}, ("kind", "outcome"),
            ),
            Metric(
                "roost_run_seconds", HISTOGRAM, "How long runs took.",
                {labels: h.copy() for labels, h in runs.items()}, ("kind", "outcome"),
            ),
            Metric("roost_envelopes_posted_total", COUNTER, "What was put into inboxes.", dict(self.posted), ("kind",)),
            Metric(
                "roost_envelopes_settled_total", COUNTER, "What became of what agents were given.",
                dict(self.settled), ("verdict",),
            ),
            Metric(
                "roost_tokens_total", COUNTER, "Tokens that models read and wrote.",
                dict(self.tokens), ("profile", "direction"),
            ),
            Metric(
                "roost_cost_dollars_total", COUNTER, "What that cost, where the price is known.",
                dict(self.cost), ("profile",),
            ),
            Metric("roost_errors_total", COUNTER, "Tries that failed, by their fault.", dict(self.faults), ("fault",)),
            _one("roost_dead_letters_total", COUNTER, "What could not be handled for good.", self.dead),
            _one("roost_worker_restarts_total", COUNTER, "Workers that were started again.", self.restarts),
            Metric(
                "roost_timer_lateness_seconds", HISTOGRAM, "How long after their time timers were fired.",
                {(): self.late.copy()},
            ),
        ]  # fmt: skip


def _looked_up(shop: Shop) -> list[Metric]:
    hall, pace = shop.office.hall, shop.store.pace()
    awake, (loops, free) = hall.all(), hall.loops.counts
    return [
        _one("roost_awake_agents", GAUGE, "Agents that are awake.", len(awake)),
        _one("roost_running", GAUGE, "Envelopes that agents are working on.", sum(len(a.running) for a in awake)),
        _one("roost_queue_depth", GAUGE, "Envelopes of awake agents in memory.", sum(a.depth for a in awake)),
        _one("roost_stuck_agents", GAUGE, "Agents whose loop does not turn.", sum(a.stuck for a in awake)),
        _one("roost_loops_lent", GAUGE, "Loops that agents have.", loops - free),
        _one("roost_loops_free", GAUGE, "Loops that wait for an agent.", free),
        _one("roost_workers", GAUGE, "Workers for talks with profiles.", len(hall.inbox.workers)),
        _one("roost_queued_writes", GAUGE, "Writes that wait for the store.", pace.queued_writes),
        _one("roost_queued_reads", GAUGE, "Reads that wait for the store.", pace.queued_reads),
        Metric(
            "roost_breaker_open", GAUGE, "Whether a provider that has failed is not asked just now.",
            {(name,): float(is_open) for name, is_open in shop.breakers.all().items()}, ("provider",),
        ),
        Metric("roost_batch_size", HISTOGRAM, "Operations of the store to a commit.", {(): pace.batches}),
    ]  # fmt: skip


def _one(name: str, kind: MetricKind, told: str, value: float) -> Metric:
    return Metric(name, kind, told, {(): value})
