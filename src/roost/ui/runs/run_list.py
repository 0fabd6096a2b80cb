"""List of finished runs with its filters, which are in the URL, and what runs now."""

from __future__ import annotations

import streamlit as st

from roost.core.envelopes.envelope import Kind
from roost.core.envelopes.tasks import TaskStatus
from roost.core.journal.run_history import Run
from roost.core.values.ids import reference
from roost.ui import kinds
from roost.ui.runs import labels
from roost.ui.shell import navigation, url_choice
from roost.ui.shell.navigation import Route
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

PAGE = 50
WIDTH = 165
"""Pixels of a filter: two stand beside each other on a phone."""
MOST_RUNNING = 10
"""Tasks and talks that are shown as running; talks among the ones that were used last."""
FILTERS = ("agent", "talk", "outcome", "kind")
COLUMNS = [
    Column("When"),
    Column("Who"),
    Column("Kind"),
    Column("Status"),
    Column("Duration", "number"),
    Column("Steps", "number"),
    Column("Tokens", "number"),
    Column("Cost", "number"),
    Column("Error", "long"),
]
RUNNING = [Column("Who"), Column("Kind"), Column("Started"), Column("What", "long")]


def draw(visit: Visit) -> None:
    wanted = {name: value for name in FILTERS if (value := navigation.asked(name))}
    before = navigation.asked("before")
    _filters(is_filtered=bool(wanted))
    if not wanted and not before:
        _running(visit)
    runs = visit.service.runs.list(visit.user, **wanted, limit=PAGE + 1, before=before)
    titles = _titles(visit, runs)
    empty = (
        "No runs match."
        if wanted or before
        else "No runs yet. Each answer, task and mail that an agent handles is one."
    )
    table.draw("runs", "Finished runs", COLUMNS, [_row(run, titles) for run in runs[:PAGE]], empty=empty)
    _paging(wanted, before, runs)


# --- filters ------------------------------------------------------------------------------------------------


def _filters(*, is_filtered: bool) -> None:
    """Draw the filters. The URL says what they are: it can be shared, and changed by the buttons of the browser."""
    outcomes = {"": "Any status", **{str(one): label for one, (label, _) in labels.OUTCOMES.items()}}
    offered = {"": "Any kind", **{str(one): kinds.label(one) for one in Kind}}
    with st.container(key="run_filters", horizontal=True, vertical_alignment="bottom"):
        url_choice.search("Agent", "agent", "Any agent", icon=None, clears=("before", "talk"), width=WIDTH)
        url_choice.choice("Status", "outcome", [*outcomes], outcomes, clears=("before",), width=WIDTH)
        url_choice.choice("Kind", "kind", [*offered], offered, clears=("before",), width=WIDTH)
        if is_filtered:
            navigation.link(Route.RUNS, "Show all", icon=False)
    if navigation.asked("talk"):
        st.caption("Only runs of one talk.")


def _paging(wanted: dict[str, str], before: str | None, runs: list[Run]) -> None:
    with st.container(key="run_pages", horizontal=True):
        if before:
            navigation.link(Route.RUNS, "Newest", icon=False, **wanted)
        if len(runs) > PAGE:
            navigation.link(Route.RUNS, "Older", icon=False, **wanted, before=runs[PAGE - 1].run_id)


# --- rows ---------------------------------------------------------------------------------------------------


def _titles(visit: Visit, runs: list[Run]) -> dict[str, str]:
    """Return the titles of talks, of those that were used last."""
    if not any(run.talk_session_id for run in runs):
        return {}
    return {talk.talk_session_id: talk.title for talk in visit.service.list_sessions(visit.user)}


def _row(run: Run, titles: dict[str, str]) -> Row:
    label, tone = labels.outcome(run)
    cells = (
        Cell(labels.moment(run.started), navigation.url(Route.RUNS, run=run.run_id), title=run.run_id),
        _who(run, titles),
        kinds.label(run.kind) + (f" (attempt {run.attempts})" if run.attempts > 1 else ""),
        Cell(label, tone=tone),
        labels.duration(run.started, run.ended),
        str(run.steps or ""),
        labels.tokens(run.usage),
        labels.cost(run.usage),
        labels.error(run),
    )
    return Row(run.run_id, cells)


def _who(run: Run, titles: dict[str, str]) -> Cell:
    if run.agent_id is not None:
        return Cell(run.agent_id, navigation.url(Route.AGENTS, agent=run.agent_id))
    talk = run.talk_session_id or ""
    return Cell(titles.get(talk) or f"Talk {reference(talk)}", navigation.url(Route.TALKS, talk=talk))


def _running(visit: Visit) -> None:
    """Draw the tasks and talks that run now, if there are any."""
    tasks = visit.service.tasks.list(visit.user, status=TaskStatus.RUNNING, limit=MOST_RUNNING)
    talks = [talk for talk in visit.service.list_sessions(visit.user, limit=MOST_RUNNING) if talk.running]
    rows = [
        Row(
            task.task_id,
            (
                Cell(task.agent_id, navigation.url(Route.AGENTS, agent=task.agent_id)),
                Cell("Task", tone="busy"),
                labels.moment(task.started or task.created),
                _first_line(task.prompt),
            ),
        )
        for task in tasks
    ]
    for talk in talks:
        name = Cell(talk.title or "New talk", navigation.url(Route.TALKS, talk=talk.talk_session_id))
        rows.append(Row(talk.talk_session_id, (name, Cell("Talk", tone="busy"), labels.moment(talk.updated), "")))
    if rows:
        st.header("Running now", anchor=False)
        table.draw("running", "Running now", RUNNING, rows, empty="")
        st.header("Finished", anchor=False)


def _first_line(text: str) -> str:
    line = " ".join(text[:400].split())
    return line if len(line) <= 120 else f"{line[:119]}…"
