"""The ends of tasks: who waits for which."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.tasks import Task, TaskStatus
from roost.core.runs import Closing, Verdict
from roost.core.talks.messages import at
from roost.core.values.addresses import of_key
from roost.ports import Host, Pending

MOST = 10_000
"""Tasks of which it is known that they are under way; of others, the store is asked."""


class TaskWaiters:
    """Any thread may call: each step is one act on a dictionary."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._bells: dict[str, list[Pending[Task | None]]] = {}
        self._sent: dict[str, str] = {}
        """Tasks that were sent from here and have not failed or ended since, with their senders."""

    def sent(self, envelope: Envelope) -> None:
        if len(self._sent) >= MOST:
            self._sent.clear()
        self._sent[envelope.envelope_id] = envelope.sender

    def is_under_way(self, sender: str, task_id: str) -> bool:
        """Return True if it need not be looked up to know that this sender has sent it, and that it is not over."""
        return self._sent.get(task_id) == sender

    def forget(self, task_id: str) -> None:
        """There is more to know of it than what was sent."""
        self._sent.pop(task_id, None)

    def listen(self, task_id: str) -> Pending[Task | None]:
        """Rung when it is over, with the task, or with None: then it has to be looked up."""
        bell: Pending[Task | None] = self._host.pending()
        self._bells.setdefault(task_id, []).append(bell)
        return bell

    def unlisten(self, task_id: str, bell: Pending[Task | None]) -> None:
        bells = self._bells.get(task_id)
        if bells is not None:
            if bell in bells:
                bells.remove(bell)
            if not bells:
                self._bells.pop(task_id, None)

    def done(self, closing: Closing) -> None:
        """It was settled, and is over."""
        task_id = closing.envelope.envelope_id
        is_whole = self._sent.pop(task_id, None) is not None
        bells = self._bells.pop(task_id, None)
        if bells is not None:
            _ring(bells, _task_of(closing) if is_whole else None)

    def tell(self, task_id: str) -> None:
        """Have callers that wait for this task look it up again."""
        self._sent.pop(task_id, None)
        _ring(self._bells.pop(task_id, []), None)

    def tell_all(self) -> None:
        """Any of them may be gone."""
        self._sent.clear()
        for task_id in list(self._bells):
            self.tell(task_id)


def _ring(bells: list[Pending[Task | None]], task: Task | None) -> None:
    for bell in bells:
        bell.set(task)


def _task_of(c: Closing) -> Task | None:
    """One that was done at its first try, as it is kept; of all others there is more to know."""
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
