"""Replay of a run: what it does now beside what it did then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st

from roost.core.journal.run_history import Replay, RunEntry
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.callbacks import once, uninterrupted
from roost.ui.design import components
from roost.ui.runs import differences, values
from roost.ui.shell.background import BackgroundCall
from roost.ui.shell.visit import Visit
from roost.ui.text import plain

SECONDS = 60.0
"""Longest replay. A page asks for it on a thread of its own."""
PATIENCE = 5.0
"""Seconds beyond that in which its end must arrive."""
LOOK = 0.5
AT_THE_END = -1
MOST_STEPS = 200
_KEPT = "replays"
"""Replays of this session by run: each is running, or its result."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Replay with its differences as HTML: comparing long texts takes too long for each redraw of a page."""

    replay: Replay
    steps: str
    """Empty without steps."""
    output: str


def draw(visit: Visit, entry: RunEntry) -> None:
    """Draw the button that replays a run, and the newest replay of this session."""
    st.header("Replay", anchor=False)
    st.caption("Runs the brain again with the recorded input and results. No model or tool is called, nothing is sent.")
    call = _kept().get(entry.run.run_id)
    with st.container(key="replay", horizontal=True, vertical_alignment="bottom"):
        _choice(entry)
        is_running = call is not None and not call.is_done
        st.button(
            "Replay",
            key="replay_now",
            disabled=is_running,
            on_click=once(_start),
            args=(visit.service, visit.user, entry.run.run_id, _steps(entry)),
        )
    if call is None:
        return
    if is_running:
        st.fragment(_wait, run_every=LOOK)(call)
        return
    try:
        _result(call.result())
    except RoostError as error:
        components.notice(error)


def _kept() -> dict[str, BackgroundCall[Compared]]:
    kept: dict[str, BackgroundCall[Compared]] = st.session_state.setdefault(_KEPT, {})
    return kept


def _choice(entry: RunEntry) -> None:
    ends = [AT_THE_END, *range(min(len(entry.steps), MOST_STEPS))]
    st.selectbox("Stop", ends, key="replay_until", format_func=_end, width=220)


def _steps(entry: RunEntry) -> list[str]:
    return [f"{step.kind} {step.name}" for step in entry.steps]


def _end(until: int) -> str:
    if until == AT_THE_END:
        return "At the end"
    return f"After step {until}" if until else "Before the first step"


@uninterrupted
def _start(service: AgentService, user: str, run_id: str, recorded: Sequence[str]) -> None:
    """Replay a run in the background; of older replays only that of this run is forgotten."""
    if (running := _kept().get(run_id)) is not None and not running.is_done:
        return
    chosen = int(st.session_state["replay_until"])
    until = None if chosen == AT_THE_END else chosen
    replay = partial(_replayed, service, user, run_id, recorded, until)
    _kept()[run_id] = BackgroundCall(replay, "roost-replay-page", SECONDS + PATIENCE)


def _replayed(
    service: AgentService,
    user: str,
    run_id: str,
    recorded: Sequence[str],
    until: int | None,
    _: Callable[[], bool],
) -> Compared:
    replay = service.runs.replay(user, run_id, until=until, within=SECONDS)
    text = replay.recorded_text
    if replay.stopped_at is not None:
        recorded, text = recorded[: replay.stopped_at], text[: len(replay.text)]
    steps = differences.html("Steps, recorded and replayed", recorded, replay.steps)
    output = differences.html("Output, recorded and replayed", text.splitlines(), replay.text.splitlines())
    return Compared(replay, steps if recorded or replay.steps else "", output)


def _wait(call: BackgroundCall[Compared]) -> None:
    """Draw a line until the replay has ended; then draw the page again."""
    if call.is_done:
        st.rerun()
    st.html('<div role="status">Replaying…</div>')


def _remarks(diff: str) -> str:
    """Return what differs beside the text, which is shown side by side."""
    return "\n".join(line for line in diff.splitlines() if not line.startswith((" ", "+", "-", "@@")))


def _result(compared: Compared) -> None:
    replay = compared.replay
    where = "" if replay.stopped_at is None else f" up to step {replay.stopped_at}"
    if replay.is_identical:
        st.html(f'<p class="roost-verdict" role="status">✓ Identical{where}.</p>')
    else:
        st.html(f'<p class="roost-verdict" role="status">≠ The replay differs{where}.</p>')
        if remarks := _remarks(replay.diff):
            values.draw("Differences", remarks)
    if replay.error is not None:
        components.notice(f"The replay ended with: {replay.error}")
    if compared.steps:
        st.html(compared.steps)
    st.html(compared.output)
    if replay.sent:
        st.markdown("**Would send again**")
        for sent in replay.sent:
            st.markdown(f"- {plain(sent)}")
