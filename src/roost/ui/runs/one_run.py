"""One run: what it was about, its steps over time, its input and its output."""

from __future__ import annotations

from contextlib import suppress
from html import escape

import streamlit as st

from roost.core.envelopes.envelope import Kind
from roost.core.journal.run_history import RunEntry
from roost.core.values.addresses import shortened
from roost.core.values.ids import reference
from roost.errors import NotFound
from roost.ui import kinds
from roost.ui.design import components
from roost.ui.runs import labels, replays, run_links, step_details, values, waterfall
from roost.ui.shell.visit import Visit
from roost.ui.text import plain


def draw(visit: Visit, run_id: str) -> None:
    entry = visit.service.runs.get(visit.user, run_id)
    run_links.draw(entry)
    _problem(visit, entry)
    _facts(entry)
    waterfall.draw(entry, visit.user)
    step_details.draw(entry, visit.user)
    _input(entry, visit.user)
    st.header("Output", anchor=False)
    values.draw("Output", entry.text, empty="It has no output.")
    _refused(entry)
    replays.draw(visit, entry)


def _problem(visit: Visit, entry: RunEntry) -> None:
    """Draw why it failed; for the local user with the traceback."""
    if words := _error(visit, entry):
        components.notice(words)
    if visit.is_operator and entry.traceback:
        with st.expander("Details"):
            st.code(entry.traceback, language=None, wrap_lines=True)


def _error(visit: Visit, entry: RunEntry) -> str:
    """Return the error of the run's task if it is from this run, else the sentence for its fault."""
    run = entry.run
    if run.fault and run.kind == Kind.TASK:
        with suppress(NotFound):
            error = visit.service.tasks.get(visit.user, run.envelope_id).error or ""
            if reference(run.run_id) in error:
                return error
    return labels.error(run)


def _facts(entry: RunEntry) -> None:
    """Draw what is known about the run as names and values."""
    run, usage = entry.run, entry.usage
    label, tone = labels.outcome(run)
    first = entry.first_output
    facts = {
        "Started": labels.moment(run.started),
        "Duration": labels.duration(run.started, run.ended),
        "First words after": "" if first is None else labels.duration(run.started, first),
        "Kind": kinds.label(run.kind),
        "Attempt": str(run.attempts),
        "Profile": str(entry.given.get("profile") or ""),
        "Model": usage.model,
        "Tokens": f"{usage.input_tokens:,} in, {usage.output_tokens:,} out" if usage.tokens else "",
        "Cost": labels.cost(usage),
        "Stopped": _stopped(entry),
        "Run id": run.run_id,
        "Handled": run.envelope_id,
        "Origin": "" if run.root == run.envelope_id else run.root,
    }
    shown = "".join(f"<div><dt>{name}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items() if value)
    state = f'<span class="roost-outcome" data-tone="{tone}">{escape(label)}</span>'
    st.html(f'<dl class="roost-facts"><div><dt>Status</dt><dd>{state}</dd></div>{shown}</dl>')


def _stopped(entry: RunEntry) -> str:
    """Return the receipt of a stop in words."""
    if (stop := entry.stop) is None:
        return ""
    words = f"requested {labels.moment(stop.requested)}"
    if stop.acknowledged is not None:
        words += f", no more output after {labels.duration(stop.requested, stop.acknowledged)}"
    if stop.quiesced is not None:
        words += f", everything ended after {labels.duration(stop.requested, stop.quiesced)}"
    return words + (f"; could not be stopped: {', '.join(stop.abandoned)}" if stop.abandoned else "")


def _input(entry: RunEntry, user: str) -> None:
    st.header("Input", anchor=False)
    if not entry.inputs:
        in_meeting = entry.run.kind == Kind.MEETING
        st.caption("It read its meeting." if in_meeting else "Its messages are not kept any more.")
    for number, one in enumerate(entry.inputs, start=1):
        sender = "you" if one.sender == f"user:{user}" else shortened(one.sender, user)
        st.caption(f"From {plain(sender)}" + (f": {plain(one.subject)}" if one.subject else ""))
        values.draw(f"Message {number}", one.text, empty="An empty message.")
        if one.data is not None:
            values.draw(f"Data of message {number}", one.data)
    if more := {name: value for name, value in entry.given.items() if name not in ("v", "did", "messages", "message")}:
        with st.expander("Recorded state and options"):
            values.draw("State and options", more)


def _refused(entry: RunEntry) -> None:
    """Draw what the meeting refused."""
    if not entry.refused:
        return
    st.header("Refused by the meeting", anchor=False)
    for refusal in entry.refused:
        st.caption(plain(f"{refusal.kind}: {refusal.reason}"))
        values.draw("Refused entry", refusal.text, empty="Without text.")
