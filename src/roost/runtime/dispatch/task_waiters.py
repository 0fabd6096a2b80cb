"""Callers that wait for the end of tasks."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.tasks import Task, TaskStatus
from roost.core.runs import Closing, Verdict
from roost.core.talks.messages import at
from roost.core.values.addresses import of_key
from roost.ports import Host, Pending

MOST = 10_000
"""Running tasks that are known here; other tasks are read from the store."""


class TaskWaiters:
    """Any thread may call: each step is one operation on a dictionary."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._waiters: dict[str, list[Pending[Task | None]]] = {}
        self._sent: dict[str, str] = {}
        """Tasks that were sent from here and have not failed or ended, with their senders."""

    def sent(self, envelope: Envelope) -> None:
        if len(self._sent) >= MOST:
            self._sent.clear()
        self._sent[envelope.envelope_id] = envelope.sender

    def is_under_way(self, sender: str, task_id: str) -> bool:
        """Return True if it is known without a query that this sender has sent it, and that it is not over."""
        return self._sent.get(task_id) == sender

    def forget(self, task_id: str) -> None:
        """Have callers read the task from the store: its envelope does not tell all of it."""
        self._sent.pop(task_id, None)

    def listen(self, task_id: str) -> Pending[Task | None]:
        """Return a result that is set when the task is over: to the task, or to None if it has to be read."""
        waiter: Pending[Task | None] = self._host.pending()
        self._waiters.setdefault(task_id, []).append(waiter)
        return waiter

    def unlisten(self, task_id: str, waiter: Pending[Task | None]) -> None:
        waiters = self._waiters.get(task_id)
        if waiters is not None:
            if waiter in waiters:
                waiters.remove(waiter)
            if not waiters:
                self._waiters.pop(task_id, None)

    def done(self, closing: Closing) -> None:
        """Resume the callers that wait for this task, which is over."""
        task_id = closing.envelope.envelope_id
        is_whole = self._sent.pop(task_id, None) is not None
        waiters = self._waiters.pop(task_id, None)
        if waiters is not None:
            _resume(waiters, _task_of(closing) if is_whole else None)

    def tell(self, task_id: str) -> None:
        """Have the callers that wait for this task read it."""
        self._sent.pop(task_id, None)
        _resume(self._waiters.pop(task_id, []), None)

    def tell_all(self) -> None:
        """Have all callers read their tasks: any of them may be gone."""
        self._sent.clear()
        for task_id in list(self._waiters):
            self.tell(task_id)


def _resume(waiters: list[Pending[Task | None]], task: Task | None) -> None:
    for waiter in waiters:
        waiter.set(task)


def _task_of(c: Closing) -> Task | None:
    """Return a task that was done at its first attempt, as it is stored; others have to be read."""
    e = c.envelope
    if c.verdict is not Verdict.DONE or e.attempts != 1:
        return None
    agent = of_key(e.address)
    return Task(
        e.envelope_id,
        str(agent.agent_id),
        agent.user_id,
        e.sender,
        e.body,
        e.priority,
        TaskStatus.DONE,
        1,
        at(e.created),
        at(c.started),
        at(c.ended),
        None if e.expires is None else at(e.expires),
        c.text,
    )
