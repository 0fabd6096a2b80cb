"""Tasks of an agent with their results: a list, and one task."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape

import streamlit as st

from roost.core.envelopes.tasks import Task, TaskStatus
from roost.core.journal.run_history import Run
from roost.core.monitoring.health import Inspection
from roost.ui.agents import words
from roost.ui.agents.facts import Fact, facts
from roost.ui.callbacks import uninterrupted
from roost.ui.design.components import moment
from roost.ui.shell import actions, navigation, url_choice
from roost.ui.shell.visit import Visit
from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row, RowAction

SHOWN = 50
COLUMNS = [Column("Task", "long"), Column("Status"), Column("Result", "long"), Column("From"), Column("Sent")]
ALL = "all"
TONES = {
    TaskStatus.QUEUED: "quiet",
    TaskStatus.RUNNING: "busy",
    TaskStatus.WAITING: "waiting",
    TaskStatus.DONE: "good",
    TaskStatus.FAILED: "bad",
    TaskStatus.CANCELLED: "quiet",
    TaskStatus.EXPIRED: "bad",
}
RUNS = 200
"""Newest runs of the agent among which those of a task are looked for."""


def draw(visit: Visit, seen: Inspection) -> None:
    agent_id = seen.agent.agent_id
    task_id = navigation.asked("task")
    if task_id is not None:
        return _one(visit, agent_id, task_id)
    status = url_choice.choice("Status", "status", [ALL, *TaskStatus], {ALL: "All"}, clears=("before",))
    before = navigation.asked("before")
    wanted = None if status == ALL else status
    found = visit.service.tasks.list(visit.user, agent=agent_id, status=wanted, limit=SHOWN + 1, before=before)
    shown = found[:SHOWN]
    empty = "No such tasks." if wanted or before else "No tasks yet. Give it one above."
    cancel = RowAction("Cancel", partial(_cancel, visit))
    table.draw("tasks", "Tasks", COLUMNS, [_row(task, visit.user) for task in shown], empty=empty, actions=[cancel])
    return url_choice.pages("before", shown[-1].task_id if len(found) > SHOWN else None)


def _row(task: Task, user: str) -> Row:
    outcome = task.error or task.result or ""
    cells = (
        Cell(words.short(task.prompt), words.agent_url(task.agent_id, tab="tasks", task=task.task_id)),
        Cell(task.status, tone=TONES[task.status]),
        Cell(words.short(outcome), title=words.short(outcome, 500)),
        _sender(task, user),
        moment(task.created),
    )
    return Row(task.task_id, cells)


def _sender(task: Task, user: str) -> Cell | str:
    if task.schedule_id is not None:
        return Cell("a schedule", words.agent_url(task.agent_id, tab="schedules"))
    return words.who(task.sender, user)


@uninterrupted
def _cancel(visit: Visit, task_ids: Sequence[str]) -> None:
    """Cancel tasks, the newest first, so that none starts meanwhile; those that are over stay as they are."""
    cancel = partial(visit.service.tasks.cancel, visit.user)
    actions.each(cancel, sorted(task_ids, reverse=True), lambda _: "Cancelled those that were not over.")


# --- one task ------------------------------------------------------------------------------------------------


def _one(visit: Visit, agent_id: str, task_id: str) -> None:
    st.button(
        "All tasks",
        key="all_tasks",
        type="tertiary",
        icon=":material/arrow_back:",
        on_click=url_choice.show,
        kwargs={"task": None},
    )
    task = visit.service.tasks.get(visit.user, task_id)
    if not task.is_over:
        st.button("Cancel this task", key=f"cancel_{task_id}", on_click=_cancel, args=(visit, (task_id,)))
    runs = [
        run for run in visit.service.runs.list(visit.user, agent=agent_id, limit=RUNS) if run.envelope_id == task_id
    ]
    facts("of_task", "Task", _facts(task, runs, visit.user))
    text("Task", task.prompt)
    if task.error:
        text("Error", task.error)
    if task.result is not None:
        text("Result", task.result)


def _facts(task: Task, runs: list[Run], user: str) -> list[Fact]:
    found: list[Fact] = [
        ("Status", Cell(task.status, tone=TONES[task.status])),
        ("From", _sender(task, user)),
        ("Priority", str(task.priority)),
        ("Sent", moment(task.created)),
        ("Started", "" if task.started is None else moment(task.started)),
        ("Ended", "" if task.ended is None else moment(task.ended)),
        ("Expires", "" if task.expires is None else moment(task.expires)),
    ]
    for run in reversed(runs):
        took = f"{(run.ended - run.started).total_seconds():.1f} s"
        label = f"{run.outcome}, {took}"
        found.append(
            (f"Attempt {run.attempts}", Cell(label, words.run_url(run.run_id), "bad" if run.fault else "good"))
        )
    return found


def text(title: str, content: str) -> None:
    """Draw a text as it is, under a heading."""
    st.html(f'<h3 class="roost-part">{escape(title)}</h3><pre class="roost-plain" tabindex="0">{escape(content)}</pre>')
