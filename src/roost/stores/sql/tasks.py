"""Tasks: read, list, cancel. Every query includes the owner of the agent."""

from __future__ import annotations

from roost.core.envelopes.tasks import OVER, Task, TaskStatus
from roost.core.talks.messages import at
from roost.core.values.addresses import of_key
from roost.core.values.priority import Priority
from roost.errors import NotFound
from roost.ports import Row, Tx
from roost.stores import locking
from roost.stores.sql.sending.tasks import same_task
from roost.stores.sql.tables.parked import PARKED

_STATUS = (
    "CASE WHEN tasks.status = 'queued' AND EXISTS (SELECT 1 FROM inbox i WHERE i.envelope_id = tasks.task_id"
    f" AND i.{PARKED}) THEN 'waiting' ELSE tasks.status END"
)
_TASK = (
    f"task_id, address, user_id, sender, prompt, priority, {_STATUS}, attempts, created, started, ended, expires,"
    " result, error, schedule_id"
)

_AS_GUEST = "sender = :me AND sender > 'user:' AND sender <> 'user:' || user_id"
"""Condition: the user has sent it to another user's agent."""


def get(tx: Tx, user_id: str, task_id: str) -> Task:
    row = tx.one(
        f"SELECT {_TASK} FROM tasks WHERE task_id = :task AND (user_id = :user OR sender = :sender)",
        {"task": task_id, "user": user_id, "sender": f"user:{user_id}"},
    )
    if row is None:
        raise NotFound(f"there is no task {task_id!r:.80}: it was removed, or it never existed")
    return task_of(row)


def by_key(tx: Tx, user_id: str, key: str, address: str, prompt: str) -> str | None:
    """Return the task sent with this key. Raise Conflict if its prompt differs."""
    return same_task(tx, address, f"user:{user_id}", key, prompt)


def listed(tx: Tx, user_id: str, address: str | None, status: str | None, limit: int, before: str) -> list[Task]:
    """Return tasks, newest first, before `before`. `status` queued means all that are not over."""
    ids = {
        "user": user_id,
        "me": f"user:{user_id}",
        "address": address,
        "status": status,
        "limit": limit,
        "before": before,
    }
    rows = [
        row
        for whose in _places(user_id, address)
        for row in tx.read(
            f"SELECT {_TASK} FROM tasks WHERE {whose} AND task_id < :before{_of_status(status)}"
            " ORDER BY task_id DESC LIMIT :limit",
            ids,
        )
    ]
    return sorted((task_of(row) for row in rows), key=lambda task: task.task_id, reverse=True)[:limit]


def _places(user_id: str, address: str | None) -> tuple[str, ...]:
    """Return the conditions under which the tasks of a user are found, each by one index."""
    if address is None:
        return "user_id = :user", _AS_GUEST
    if of_key(address).user_id == user_id:
        return ("address = :address",)  # without the user, whose index has the tasks of all other agents too
    return (f"{_AS_GUEST} AND address = :address",)


def _of_status(status: str | None) -> str:
    """Return the condition of a status. That it is not `done` is written out, so that the index of these is used."""
    if status is None:
        return ""
    return " AND tasks.status = :status" + ("" if status == TaskStatus.DONE else " AND tasks.status <> 'done'")


def _by_task(tx: Tx, user_id: str, task_id: str, now: float) -> locking.Rows:
    row = tx.one("SELECT address FROM tasks WHERE task_id = :task", {"task": task_id})
    return () if row is None else (locking.agent(row[0]),)


@locking.locks(_by_task)
def cancel(tx: Tx, user_id: str, task_id: str, now: float) -> Task:
    """Cancel a task and return it; one that is over is unchanged."""
    task = get(tx, user_id, task_id)
    if task.status in OVER:
        return task
    ids = {"task": task_id, "now": now}
    tx.write("DELETE FROM inbox WHERE envelope_id = :task", ids)
    rows = tx.write(f"UPDATE tasks SET status = 'cancelled', ended = :now WHERE task_id = :task RETURNING {_TASK}", ids)
    return task_of(rows[0])


def task_of(row: Row) -> Task:
    (
        task_id,
        address,
        user_id,
        sender,
        prompt,
        priority,
        status,
        attempts,
        created,
        started,
        ended,
        expires,
        result,
        error,
        schedule_id,
    ) = row
    return Task(
        task_id,
        str(of_key(address).agent_id),
        user_id,
        sender,
        prompt,
        Priority(priority),
        TaskStatus(status),
        attempts,
        at(created),
        started and at(started),
        ended and at(ended),
        expires and at(expires),
        result,
        error,
        schedule_id,
    )
