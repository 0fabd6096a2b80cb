"""Timeline of an agent: its states and its runs as bars over time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roost.core.agents.agent import AgentChange
from roost.core.journal.run_history import Run
from roost.core.monitoring.health import CurrentRun, Inspection
from roost.ui import kinds
from roost.ui.agents import words
from roost.ui.shell import url_choice
from roost.ui.shell.visit import Visit
from roost.ui.timeline import timeline
from roost.ui.timeline.timeline import Bar, TimelineLane

RANGES = {
    "15m": ("15 minutes", timedelta(minutes=15)),
    "1h": ("Hour", timedelta(hours=1)),
    "1d": ("Day", timedelta(days=1)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
}
READ = 300
"""Newest changes, and runs, that are drawn."""
MOST_LANES = 4
"""Lanes of runs that overlap; more share the last one."""


@dataclass(frozen=True, slots=True)
class Period:
    start: datetime
    end: datetime


def draw(visit: Visit, seen: Inspection) -> None:
    """Draw the plot for a time range that is kept in the URL; a young agent begins with a short one."""
    now = datetime.now(UTC)
    default = "15m" if now - seen.agent.created < RANGES["15m"][1] else "1h"
    ordered = [default, *(name for name in RANGES if name != default)]
    chosen = url_choice.choice("Time range", "range", ordered, {name: label for name, (label, _) in RANGES.items()})
    period = Period(now - RANGES[chosen][1], now)
    agent_id = seen.agent.agent_id
    changes = visit.service.agents.history(visit.user, agent_id, limit=READ)
    runs = visit.service.runs.list(visit.user, agent=agent_id, limit=READ)
    lanes = [
        TimelineLane("State", tuple(state_bars(changes, period))),
        *run_lanes([*(_bar(run) for run in reversed(runs)), *(_current(one, now) for one in seen.running)], period),
    ]
    timeline.draw("agent_timeline", "States and runs", lanes, start=period.start, end=period.end, empty="")


def state_bars(changes: Sequence[AgentChange], period: Period) -> Iterator[Bar]:
    """Yield a bar for each state, oldest first; `changes` are newest first."""
    ends = [period.end, *(change.at for change in changes)]
    for change, end in reversed([*zip(changes, ends, strict=False)]):
        if end > period.start:
            title = f"{change.after}: {change.cause}"
            yield Bar(change.at, end, str(change.after), words.TONES[change.after], title=title)


def run_lanes(bars: Iterable[Bar], period: Period) -> list[TimelineLane]:
    """Return lanes of runs in which none overlap, as far as there are enough."""
    lanes: list[list[Bar]] = []
    for bar in bars:
        if bar.end <= period.start:
            continue
        free = next((lane for lane in lanes if lane[-1].end <= bar.start), None)
        if free is None and len(lanes) < MOST_LANES:
            lanes.append(free := [])
        (lanes[-1] if free is None else free).append(bar)
    return [TimelineLane("" if number else "Runs", tuple(lane)) for number, lane in enumerate(lanes or [[]])]


def _bar(run: Run) -> Bar:
    took = (run.ended - run.started).total_seconds()
    title = f"{kinds.label(run.kind)}, {run.outcome}, {took:.1f} s"
    tone = "bad" if run.fault else "good" if run.outcome == "done" else "quiet"
    return Bar(run.started, run.ended, run.kind, tone, words.run_url(run.run_id), title)


def _current(run: CurrentRun, now: datetime) -> Bar:
    return Bar(run.since, now, run.kind, "busy", title=f"{kinds.label(run.kind)}, running")
