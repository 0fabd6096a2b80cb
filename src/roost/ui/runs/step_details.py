"""Details of the selected step: what went in, what came out."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.journal.run_history import RunEntry
from roost.core.journal.steps import Step, StepKind, StepOutcome
from roost.core.values.ids import reference
from roost.ui.runs import labels, values, waterfall
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route
from roost.ui.text import plain


def draw(entry: RunEntry, user: str) -> None:
    """Draw the step that the URL names, or how to select one."""
    if not entry.steps:
        return
    step = waterfall.selected(entry)
    if step is None:
        st.caption("Select a step to see its input and output.")
        return
    with st.container(key="step_details", border=True):
        st.subheader(plain(f"Step {step.number}: {waterfall.name(step, user)}"), anchor=False)
        _facts(entry, step)
        _links(entry, step)
        st.markdown("**Input**")
        values.draw("Input", "" if step.request is None else step.request, empty=_no_input(step))
        st.markdown("**Error**" if step.outcome == StepOutcome.FAILED else "**Output**")
        values.draw("Output", "" if step.result is None else step.result, empty="No result is recorded.")


def _no_input(step: Step) -> str:
    if step.kind == StepKind.ASK and step.asked_run_id:
        return "The question is the input of the run that answered it."
    return "No input is recorded."


def _facts(entry: RunEntry, step: Step) -> None:
    outcome = StepOutcome(step.outcome)
    label, tone = labels.STEP_OUTCOMES[outcome]
    facts = {
        "Started": labels.moment(step.began),
        "Duration": "" if step.ended is None else labels.duration(step.began, step.ended),
        "Tokens": labels.step_tokens(step.result),
        "Executed by": "" if step.run_id in ("", entry.run.run_id) else f"run {reference(step.run_id)}",
        "Idempotency key": step.key,
    }
    shown = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items() if value)
    state = f'<span class="roost-outcome" data-tone="{tone}">{escape(label)}</span>'
    st.html(f'<dl class="roost-facts"><div><dt>Status</dt><dd>{state}</dd></div>{shown}</dl>')


def _links(entry: RunEntry, step: Step) -> None:
    """Draw links to the approval, the run that answered a question, the run that executed it, and the next steps."""
    run_id, numbers = entry.run.run_id, [one.number for one in entry.steps]
    at = numbers.index(step.number)
    with st.container(key="step_links", horizontal=True):
        if step.approval_id and navigation.is_shown(Route.APPROVALS):
            navigation.link(Route.APPROVALS, "Its approval", approval=step.approval_id)
        if step.asked_run_id:
            navigation.link(Route.RUNS, "Run that answered", run=step.asked_run_id)
        if step.run_id not in ("", run_id):
            navigation.link(Route.RUNS, "Run that executed it", run=step.run_id)
        for label, other in (("Previous step", at - 1), ("Next step", at + 1)):
            if 0 <= other < len(numbers):
                navigation.link(Route.RUNS, label, icon=False, run=run_id, step=str(numbers[other]))
