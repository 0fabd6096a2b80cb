"""Writer of the engine: executes queued operations in batches, and commits each batch once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import inf
from operator import attrgetter
from typing import Any

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.monitoring.facts import FactRow
from roost.core.monitoring.metrics import SIZES, Histogram
from roost.errors import RoostError
from roost.ports import Host, Pending, Tx
from roost.stores import batching, heartbeat, locking
from roost.stores.database import Database
from roost.stores.jobs import Connected, Job, fail

log = logging.getLogger("roost.store")

BATCH = 256
BLOCKED = 0.05
"""Seconds after which a second writer, if there is one, takes new writes of other keys."""
_op = attrgetter("op")


class Writer(Connected):
    """Writer thread: takes queued jobs, up to a batch at a time, and commits them."""

    def __init__(self, host: Host, database: Database, name: str) -> None:
        self.queue: deque[Job] = deque()
        self.died: Callable[[Sequence[DeadLetter]], object] = bool
        """Called with new dead letters."""
        self.armed: Callable[[float], object] = bool
        """Called with the earliest due time of new timers."""
        self.committing: Callable[[Tx, Sequence[FactRow]], object] | None = None
        """Called with the facts of a batch, in its transaction."""
        self.reported: Callable[[Sequence[FactRow]], object] = bool
        """Called with the facts of each write."""
        self.batch: list[Job] = []
        """Jobs that are being executed. A job is in the queue or here until its callers have been notified."""
        self._since = inf
        """Monotonic time at which the batch was begun."""
        self._host = host
        self.batches = Histogram(SIZES)
        self.committed = -inf  # monotonic time of the last write
        self.lacks_room = False
        """True after a write that had no space on the disk, until a heartbeat finds space: small ones may succeed."""
        self._beat: Pending[None] | None = None
        self._name = name
        super().__init__(host, database, name, read_only=False)

    def is_due(self, since: float) -> bool:
        """Return whether a heartbeat has to find out if writes succeed: none did since this time."""
        return self._connection is not None and (self.lacks_room or self.committed < since)

    def beat(self) -> Pending[None]:
        """Write a heartbeat; callers that ask while one is under way share it."""
        beat = self._beat
        if beat is None or beat.done:
            beat = self._beat = self._host.pending()
            op, then = (heartbeat.write_with_room, self._found_room) if self.lacks_room else (heartbeat.write, None)
            self.queue.append(Job(op, (self._name, self._host.clock.now()), then, beat, key="heartbeat"))
            self.pump.ring()
        return beat

    def _found_room(self, _: None) -> None:
        self.lacks_room = False

    def step(self) -> None:
        queue = self.queue
        while queue:
            for _ in range(min(len(queue), BATCH)):
                self.batch.append(queue[0])
                queue.popleft()
            self._since = self._host.clock.monotonic()
            batch = self.batch
            if len({job.key for job in batch}) == len(batch):  # any order is allowed: equal operations share statements
                batch = sorted(batch, key=lambda job: job.op.__name__)
            self._commit(batch)
            self.batches.add(len(batch))
            self.batch, self._since = [], inf

    def is_blocked(self, now: float) -> bool:
        """Return whether its batch takes so long that it probably waits for a lock of another process."""
        return now - self._since > BLOCKED

    def holds(self, key: str) -> bool:
        """Return whether a write with this key is queued or being executed."""
        return any(job.key == key for job in self.queue.copy()) or any(job.key == key for job in list(self.batch))

    def _commit(self, batch: list[Job], *, again: bool = True) -> None:
        try:
            results, facts = self._attempt(batch)
        except _DoubtfulError as doubt:  # a retry might apply it twice
            for job in batch:
                fail(job, doubt.cause, self._database)
            return
        except Exception as error:  # any error must reach the callers
            self.lacks_room = self.lacks_room or self._database.is_full(error)
            if again and self._database.may_retry(error):
                self._commit(batch, again=False)
            elif len(batch) == 1 or self.is_without_connection(error):
                for job in batch:
                    fail(job, error, self._database)
            else:
                for job in batch:
                    self._commit([job])
            return
        if self.connection.wrote:
            self.committed = self._host.clock.monotonic()
        died, self.connection.died = self.connection.died, []
        armed, self.connection.armed = self.connection.armed, None
        # Callbacks first, then callers: an answer starts before the caller that asked continues.
        with self._host.together():
            for job, result, rows in zip(batch, results, facts, strict=True):
                if rows:
                    _follow(self.reported, rows, "facts")
                if job.then is not None and type(result) is not _Refused:
                    _follow(job.then, result, job.op.__name__)
            if died:
                _follow(self.died, died, "dead letters")
            if armed is not None:
                _follow(self.armed, armed, "arm")
        with self._host.together():
            for job, result in zip(batch, results, strict=True):
                _deliver(job, result)

    def _attempt(self, batch: list[Job]) -> tuple[list[Any], list[Sequence[FactRow]]]:
        """Execute and commit a batch; return the result and the facts of each job."""
        connection = self.connection
        connection.begin()
        try:
            locking.acquire(connection, batch)
            results = [result for _, jobs in groupby(batch, _op) for result in self._do_all(list(jobs))]
            facts = [_facts_of(job, result) for job, result in zip(batch, results, strict=True)]
            if self.committing is not None and (connection.died or any(facts)):
                self.committing(connection, [row for rows in facts for row in rows])
            connection.catch_up()
            self._finish()
        except BaseException:
            connection.rollback()
            raise
        return results, facts

    def _finish(self) -> None:
        try:
            self.connection.commit()
        except Exception as error:
            if self._database.is_doubtful(error):
                raise _DoubtfulError(error) from error
            raise

    def _do_all(self, jobs: list[Job]) -> list[Any]:
        """Execute jobs of one operation."""
        many = batching.batch_function(jobs[0].op, [job.key for job in jobs])
        if many is None:
            return [self._do(job) for job in jobs]
        done = many(self.connection, [job.args for job in jobs])
        return [self._do(job) if result is None else result for job, result in zip(jobs, done, strict=True)]

    def _do(self, job: Job) -> Any:
        """Execute one job. A refusal before any write does not affect the batch and is kept as the result."""
        connection = self.connection
        connection.wrote = False
        try:
            return job.op(connection, *job.args)
        except RoostError as refusal:
            if connection.wrote:
                raise
            return _Refused(refusal)


class _DoubtfulError(Exception):
    """Raised when it is unknown whether the commit succeeded."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True)
class _Refused:
    error: RoostError


def _facts_of(job: Job, result: Any) -> Sequence[FactRow]:
    if job.facts is None or type(result) is _Refused:
        return ()
    try:
        return job.facts(result)
    except Exception:  # the operation is more important than its report
        log.exception("facts could not be reported", extra={"operation": job.op.__name__})
        return ()


def _follow(then: Callable[[Any], object], result: Any, operation: str) -> None:
    try:
        then(result)
    except Exception:  # the commit is done: a failing callback must not affect callers
        log.exception("post-commit callback failed", extra={"operation": operation})


def _deliver(job: Job, result: Any) -> None:
    if type(result) is _Refused:
        job.pending.fail(result.error)
        if job.failed is not None:
            job.failed(result.error)
    else:
        job.pending.set(result)
