"""Steps of a run over time."""

from __future__ import annotations

from datetime import datetime

import streamlit as st

from roost.core.journal.run_history import RunEntry
from roost.core.journal.steps import Step, StepKind, StepOutcome
from roost.core.values.addresses import shortened
from roost.core.values.ids import reference
from roost.ui.runs import labels
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.timeline import timeline
from roost.ui.timeline.timeline import Bar, TimelineLane

MOST = 200
"""Steps that are drawn; the others follow on further pages."""
_MARKS = {StepOutcome.FAILED: "✕ ", StepOutcome.RETRIED: "✕ ", StepOutcome.ASKED: "… "}


def draw(entry: RunEntry, user: str) -> None:
    st.header("Steps", anchor=False)
    if not entry.steps:
        st.caption("It has no recorded steps: no model call, tool, question or `turn.step`.")
        return
    page = first_shown(entry)
    steps = entry.steps[page : page + MOST]
    start, end = bounds(entry, steps)
    lanes = ([_run_lane(entry)] if page == 0 else []) + [_lane(entry, step, end, user) for step in steps]
    timeline.draw("steps", "Steps", lanes, start=start, end=end, empty="", selected=url(entry, selected(entry)))
    with st.container(key="step_pages", horizontal=True):
        for label, at in (("Earlier steps", page - MOST), ("Later steps", page + MOST)):
            if 0 <= at < len(entry.steps):
                navigation.link(Route.RUNS, label, icon=False, run=entry.run.run_id, step=str(entry.steps[at].number))


def selected(entry: RunEntry) -> Step | None:
    """Return the step that the URL names."""
    name = navigation.asked("step")
    return next((step for step in entry.steps if str(step.number) == name), None)


def url(entry: RunEntry, step: Step | None) -> str:
    if step is None:
        return navigation.url(Route.RUNS, run=entry.run.run_id)
    return navigation.url(Route.RUNS, run=entry.run.run_id, step=str(step.number))


def first_shown(entry: RunEntry) -> int:
    """Return the position of the first step of the page with the selected one."""
    step = selected(entry)
    return 0 if step is None else entry.steps.index(step) // MOST * MOST


def bounds(entry: RunEntry, steps: tuple[Step, ...]) -> tuple[datetime, datetime]:
    """Return the time from the first to the last step and, where all steps are shown, of the run."""
    starts, ends = [step.began for step in steps], [step.ended or step.began for step in steps]
    if len(steps) == len(entry.steps):
        starts.append(entry.run.started)
        ends.append(entry.run.ended)
    return min(starts), max(ends)


def name(step: Step, user: str) -> str:
    """Return what a step is, such as `Tool price`; own agents have their short names."""
    asked = step.kind == StepKind.ASK
    called = shortened(f"agent:{step.name}", user).removeprefix("agent:") if asked else step.name
    return f"{labels.STEP_KINDS.get(step.kind, step.kind)} {called}"


def _run_lane(entry: RunEntry) -> TimelineLane:
    run = entry.run
    label, tone = labels.outcome(run)
    took = labels.duration(run.started, run.ended)
    return TimelineLane("This run", (Bar(run.started, run.ended, took, tone, title=f"This run: {label}, {took}"),))


def _lane(entry: RunEntry, step: Step, end: datetime, user: str) -> TimelineLane:
    label, tone = labels.STEP_OUTCOMES.get(StepOutcome(step.outcome), (step.outcome, ""))
    took = "" if step.ended is None else labels.duration(step.began, step.ended)
    mark = _MARKS.get(StepOutcome(step.outcome), "")
    parts = [took or label, labels.step_tokens(step.result)]
    if step.run_id not in ("", entry.run.run_id):
        parts.append(f"by run {reference(step.run_id)}")
    text = mark + " · ".join(part for part in parts if part)
    title = f"Step {step.number}, {name(step, user)}: {label}" + (f", {took}" if took else "")
    return TimelineLane(
        f"{step.number}. {name(step, user)}",
        (Bar(step.began, step.ended or end, text, tone, url(entry, step), title),),
        depth=1,
    )
