"""Engine of every store: operations are queued, executed in batches, and committed together.

    write(op) ──▶ queue ──▶ writer: BEGIN · op · op · op · COMMIT ──▶ then · then · then ──▶ callers

Many operations share one commit, and so one fsync. There are no savepoints: when a batch fails it is rolled back and
its operations are executed one by one, so that only the failing one fails.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, groupby
from math import inf
from operator import attrgetter
from typing import Any, TypeVar
from zlib import crc32

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.monitoring.metrics import SIZES, Histogram
from roost.errors import Invalid, RoostError, Unavailable
from roost.ports import Host, Pending, StoreLoad
from roost.stores import batching, heartbeat
from roost.stores.database import Connection, Database

T = TypeVar("T")
log = logging.getLogger("roost.store")

BATCH = 256
_op = attrgetter("op")


@dataclass(slots=True)
class _Job:
    op: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], object] | None
    pending: Pending[Any]
    failed: Callable[[Exception], object] | None = None
    key: str = ""
    number: int = 0
    """Order in which reads were requested."""


class Engine:
    """A store on any database. `close` executes what is queued first."""

    def __init__(self, host: Host, database: Database, *, queued: int) -> None:
        self._host = host
        self.database = database
        self.generation = database.generation
        self._most = queued
        self._closed = False
        self._reads: deque[_Job] = deque()
        self._numbers = count()
        self._writers: list[_Writer] = []
        self._readers: list[_Reader] = []
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
            connection = database.connect(read_only=False)
            self._writers.append(_Writer(self._host, database, connection, f"roost-writer-{number}"))
        for number in range(database.readers):
            connection = database.connect(read_only=True)
            name = f"roost-reader-{number}"
            self._readers.append(_Reader(self._host, database, connection, self._reads, self._numbers, name))

    def write(
        self,
        op: Callable[..., T],
        *args: Any,
        key: str = "",
        then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:
        self._check_open()
        writers = self._writers
        writer = writers[0] if len(writers) == 1 else writers[crc32(key.encode()) % len(writers)]
        if len(writer.queue) >= self._most:
            raise Unavailable("the store cannot keep up: too many writes are waiting; try again in a moment")
        job = _Job(op, args, then, self._host.pending(), failed, key)
        writer.queue.append(job)
        writer.pump.ring()
        self._check_in_time(job)
        return job.pending

    def read(self, op: Callable[..., T], *args: Any) -> Pending[T]:
        self._check_open()
        if len(self._reads) >= self._most:
            raise Unavailable("the store cannot keep up: too many reads are waiting; try again in a moment")
        job = _Job(op, args, None, self._host.pending(), number=next(self._numbers))
        self._reads.append(job)
        for reader in self._readers:  # an idle reader takes it
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

    def listen(self, died: Callable[[Sequence[DeadLetter]], object], armed: Callable[[float], object] = bool) -> None:
        for writer in self._writers:
            writer.died, writer.armed = died, armed

    @property
    def lost(self) -> Unavailable | None:
        return self.database.lost

    async def heartbeat(self, age: float) -> None:
        self._check_open()
        since = self._host.clock.monotonic() - age
        for beat in [writer.beat() for writer in self._writers if writer.committed < since]:
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
        parts: list[_Writer | _Reader] = [*self._readers, *self._writers]
        for part in parts:
            part.pump.close()
            part.step()
            part.connection.close()
        self.database.release()

    def _check_in_time(self, job: _Job) -> None:
        """Fail a job that was queued while the engine closed: it may never be executed."""
        if self._closed:
            job.pending.fail(Unavailable("this Roost is closed"))

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("this Roost is closed")


class _Writer:
    """Writer thread: takes queued jobs, up to a batch at a time, and commits them."""

    def __init__(self, host: Host, database: Database, connection: Connection, name: str) -> None:
        self.queue: deque[_Job] = deque()
        self.died: Callable[[Sequence[DeadLetter]], object] = bool
        """Called with new dead letters."""
        self.armed: Callable[[float], object] = bool
        """Called with the earliest due time of new timers."""
        self.connection = connection
        self._host = host
        self._database = database
        self.batches = Histogram(SIZES)
        self.committed = -inf  # monotonic time of the last write
        self._beat: Pending[None] | None = None
        self._name = name
        self.pump = host.pump(name, self.step)

    def beat(self) -> Pending[None]:
        """Write a heartbeat; callers that ask while one is under way share it."""
        beat = self._beat
        if beat is None or beat.done:
            beat = self._beat = self._host.pending()
            self.queue.append(_Job(heartbeat.write, (self._name, self._host.clock.now()), None, beat, key="heartbeat"))
            self.pump.ring()
        return beat

    def step(self) -> None:
        queue = self.queue
        while queue:
            batch = [queue.popleft() for _ in range(min(len(queue), BATCH))]
            if len({job.key for job in batch}) == len(batch):  # any order is allowed: equal operations share statements
                batch.sort(key=lambda job: job.op.__name__)
            self._commit(batch)
            self.batches.add(len(batch))

    def _commit(self, batch: list[_Job], *, again: bool = True) -> None:
        try:
            results = self._attempt(batch)
        except _DoubtfulError as doubt:  # a retry might apply it twice
            for job in batch:
                _fail(job, doubt.cause, self._database)
            return
        except Exception as error:  # any error must reach the callers
            if again and self._database.may_retry(error):
                self._commit(batch, again=False)
            elif len(batch) == 1 or self._database.is_disconnected(error):
                for job in batch:
                    _fail(job, error, self._database)
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
            for job, result in zip(batch, results, strict=True):
                if job.then is not None and type(result) is not _Refused:
                    _follow(job.then, result, job.op.__name__)
            if died:
                _follow(self.died, died, "dead letters")
            if armed is not None:
                _follow(self.armed, armed, "arm")
        with self._host.together():
            for job, result in zip(batch, results, strict=True):
                _deliver(job, result)

    def _attempt(self, batch: list[_Job]) -> list[Any]:
        connection = self.connection
        connection.begin()
        try:
            results = [result for _, jobs in groupby(batch, _op) for result in self._do_all(list(jobs))]
            connection.catch_up()
            self._finish()
        except BaseException:
            connection.rollback()
            raise
        return results

    def _finish(self) -> None:
        try:
            self.connection.commit()
        except Exception as error:
            if self._database.is_doubtful(error):
                raise _DoubtfulError(error) from error
            raise

    def _do_all(self, jobs: list[_Job]) -> list[Any]:
        """Execute jobs of one operation."""
        many = batching.batch_function(jobs[0].op, [job.key for job in jobs])
        if many is None:
            return [self._do(job) for job in jobs]
        done = many(self.connection, [job.args for job in jobs])
        return [self._do(job) if result is None else result for job, result in zip(jobs, done, strict=True)]

    def _do(self, job: _Job) -> Any:
        """Execute one job. A refusal before any write does not affect the batch and is kept as the result."""
        connection = self.connection
        connection.wrote = False
        try:
            return job.op(connection, *job.args)
        except RoostError as refusal:
            if connection.wrote:
                raise
            return _Refused(refusal)


class _Reader:
    """Reader thread: takes reads from the shared queue, as many as there are, in one transaction."""

    def __init__(
        self, host: Host, database: Database, connection: Connection, queue: deque[_Job], numbers: count[int], name: str
    ) -> None:
        self.connection = connection
        self._queue = queue
        self._numbers = numbers
        self._database = database
        self.pump = host.pump(name, self.step)

    def step(self) -> None:
        while (job := self._next()) is not None:
            if (left := self._read_batch(job)) is not None:
                self._read(left)

    def _next(self) -> _Job | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _read_batch(self, job: _Job | None) -> _Job | None:
        """Execute this read and those queued behind it; return one that failed or came too late.

        A read must see everything committed before it was requested: these were requested before the transaction began.
        """
        number = next(self._numbers)
        with suppress(Exception):  # reported when it fails by itself too
            self.connection.begin()
            try:
                while job is not None and job.number < number:
                    job.pending.set(job.op(self.connection, *job.args))
                    job = self._next()
            finally:
                self.connection.rollback()
        return job

    def _read(self, job: _Job, *, again: bool = True) -> None:
        try:
            self.connection.begin()
            try:
                result = job.op(self.connection, *job.args)
            finally:
                self.connection.rollback()
        except Exception as error:  # any error must reach the caller
            if again and self._database.may_retry(error):
                self._read(job, again=False)
            else:
                self._fail(job, error)
            return
        job.pending.set(result)

    def _fail(self, job: _Job, error: Exception) -> None:
        """Fail a job; without a connection fail all queued jobs, since each would wait as long."""
        failed = [job]
        if self._database.is_disconnected(error):
            failed += iter(self._next, None)
        for failed_job in failed:
            _fail(failed_job, error, self._database)


class _DoubtfulError(Exception):
    """Raised when it is unknown whether the commit succeeded."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True)
class _Refused:
    error: RoostError


def _follow(then: Callable[[Any], object], result: Any, operation: str) -> None:
    try:
        then(result)
    except Exception:  # the commit is done: a failing callback must not affect callers
        log.exception("post-commit callback failed", extra={"operation": operation})


def _deliver(job: _Job, result: Any) -> None:
    if type(result) is _Refused:
        job.pending.fail(result.error)
        if job.failed is not None:
            job.failed(result.error)
    else:
        job.pending.set(result)


def _fail(job: _Job, error: Exception, database: Database) -> None:
    reported = error if isinstance(error, RoostError) else database.translate(error)
    if isinstance(error, UnicodeEncodeError):  # a retry would fail the same way forever
        reported = Invalid("a text contains half of a surrogate pair, which cannot be stored")
    if reported is None:
        log.error("store operation failed", exc_info=error, extra={"operation": job.op.__name__})
        reported = Unavailable("the store operation failed: see the log")
    if reported is not error:
        reported.__cause__ = error
    job.pending.fail(reported)
    if job.failed is not None:
        job.failed(reported)
