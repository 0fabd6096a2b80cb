"""Engine of every store: operations are queued, executed in batches, and committed together.

    write(op) ──▶ queue ──▶ writer: BEGIN · op · op · op · COMMIT ──▶ then · then · then ──▶ callers

Many operations share one commit, and so one fsync. There are no savepoints: when a batch fails it is rolled back and
its operations are executed one by one, so that only the failing one fails.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any, TypeVar

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.monitoring.facts import FactRow
from roost.core.monitoring.metrics import SIZES, Histogram
from roost.errors import RoostError, Unavailable
from roost.ports import Host, Pending, StoreLoad, Tx
from roost.stores.database import Connection, Database
from roost.stores.jobs import Job
from roost.stores.reader import Reader
from roost.stores.writer import Writer

T = TypeVar("T")
log = logging.getLogger("roost.store")


class Engine:
    """A store on any database. `close` executes what is queued first."""

    def __init__(self, host: Host, database: Database, *, queued: int) -> None:
        self._host = host
        self.database = database
        self.generation = database.generation
        self._most = queued
        self._closed = False
        self._reads: deque[Job] = deque()
        self._numbers = count()
        self._writers: list[Writer] = []
        self._readers: list[Reader] = []
        self._here = host.lock()
        self._own: Connection | None = None
        """Connection for reads on callers' threads."""
        try:
            self._start(database)
        except BaseException:
            self.close()
            raise

    def _start(self, database: Database) -> None:
        for number in range(database.writers):
            self._writers.append(Writer(self._host, database, f"roost-writer-{number}"))
        _ = self._writers[0].connection  # a database that cannot be used is refused here
        for number in range(database.readers):
            name = f"roost-reader-{number}"
            self._readers.append(Reader(self._host, database, self._reads, self._numbers, name))

    def write(
        self,
        op: Callable[..., T],
        *args: Any,
        key: str = "",
        facts: Callable[[T], Sequence[FactRow]] | None = None,
        then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:
        self._check_open()
        writer = self._writers[0] if len(self._writers) == 1 else self._writer_of(key)
        if len(writer.queue) >= self._most:
            raise Unavailable("the store cannot keep up: too many writes are waiting; try again in a moment")
        job = Job(op, args, then, self._host.pending(), failed, key, facts=facts)
        writer.queue.append(job)
        writer.pump.ring()
        self._check_in_time(job)
        return job.pending

    def _writer_of(self, key: str) -> Writer:
        """Return the first writer, or the second one while the first is blocked. Writes of one key keep their order."""
        first, second, *_ = self._writers
        if (second.queue or second.batch) and second.holds(key):
            return second
        now = self._host.clock.monotonic()
        if not key or not first.is_blocked(now) or second.is_blocked(now) or first.holds(key):
            return first
        return second

    def read(self, op: Callable[..., T], *args: Any) -> Pending[T]:
        self._check_open()
        if len(self._reads) >= self._most:
            raise Unavailable("the store cannot keep up: too many reads are waiting; try again in a moment")
        job = Job(op, args, None, self._host.pending(), number=next(self._numbers))
        self._reads.append(job)
        for reader in [one for one in self._readers if not one.is_busy][:1] or self._readers:
            reader.pump.ring()
        self._check_in_time(job)
        return job.pending

    def read_now(self, op: Callable[..., T], *args: Any) -> T:
        with self._here:
            self._check_open()
            try:
                return self._read_here(op, args)
            except RoostError:
                raise
            except Exception as error:
                if self.database.may_retry(error):
                    return self._read_here(op, args)
                raise self.database.translate(error) or error from error

    def _read_here(self, op: Callable[..., T], args: tuple[Any, ...]) -> T:
        if self._own is None:
            self._own = self.database.connect(read_only=True)
        self._own.begin()
        try:
            return op(self._own, *args)
        finally:
            self._own.rollback()

    def listen(
        self,
        died: Callable[[Sequence[DeadLetter]], object],
        armed: Callable[[float], object] = bool,
        *,
        committing: Callable[[Tx, Sequence[FactRow]], object] | None = None,
        reported: Callable[[Sequence[FactRow]], object] = bool,
    ) -> None:
        for writer in self._writers:
            writer.died, writer.armed, writer.committing, writer.reported = died, armed, committing, reported

    @property
    def lost(self) -> Unavailable | None:
        return self.database.lost

    async def heartbeat(self, age: float) -> None:
        self._check_open()
        since = self._host.clock.monotonic() - age
        for beat in [writer.beat() for writer in self._writers if writer.is_due(since)]:
            await beat
        if (problem := self.database.problem()) is not None:
            raise problem.with_traceback(None)  # the same error may be raised many times

    def load(self) -> StoreLoad:
        batches = Histogram(SIZES)
        for writer in self._writers:
            batches.counts = [a + b for a, b in zip(batches.counts, writer.batches.counts, strict=True)]
            batches.total += writer.batches.total
        return StoreLoad(sum(len(writer.queue) for writer in self._writers), len(self._reads), batches)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        with self._here:
            if self._own is not None:
                self._own.close()
        # Writers last: SQLite removes the journal when the last connection closes, if that one may write.
        parts: list[Writer | Reader] = [*self._readers, *self._writers]
        for part in parts:
            part.close()
        self.database.release()

    def _check_in_time(self, job: Job) -> None:
        """Fail a job that was queued while the engine closed: it may never be executed."""
        if self._closed:
            job.pending.fail(Unavailable("this Roost is closed"))

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("this Roost is closed")
