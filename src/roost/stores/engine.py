"""The engine under every store: operations are queued, done in batches, and committed together.

    write(op) ──▶ queue ──▶ writer: BEGIN · op · op · op · COMMIT ──▶ then · then · then ──▶ whoever waits

Many operations share one commit, and so one wait for the disk. There are no savepoints: when a batch
fails it is rolled back and its operations are done one by one, so that the one that fails fails alone.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, groupby
from operator import attrgetter
from typing import Any, Protocol, TypeVar
from zlib import crc32

from roost.core.envelopes import DeadLetter
from roost.core.metrics import SIZES, Histogram
from roost.errors import Invalid, RoostError, Unavailable
from roost.ports import Host, Pace, Pending, Tx
from roost.stores import together

T = TypeVar("T")
log = logging.getLogger("roost.store")

BATCH = 256
_op = attrgetter("op")


class Connection(Tx, Protocol):
    """One connection to a database; used by one thread at a time."""

    wrote: bool
    """Whether anything was written since `begin`, or since it was last set to False."""

    def begin(self) -> None: ...

    def catch_up(self) -> None:
        """Write what was left for later."""
        ...

    def commit(self) -> None: ...

    def rollback(self) -> None:
        """Back to where `begin` was; a connection that is beyond help is replaced. Raises nothing."""
        ...

    def close(self) -> None: ...


class Database(Protocol):
    """A kind of database: how to reach it and what its errors mean."""

    writers: int
    readers: int

    def connect(self, *, read_only: bool) -> Connection: ...

    def translate(self, error: Exception) -> RoostError | None:
        """What a driver's error means to whoever asked; None for what is no error of the database."""
        ...

    def is_doubtful(self, error: Exception) -> bool:
        """Whether a commit that failed so may have been done all the same."""
        ...

    def may_retry(self, error: Exception) -> bool:
        """Whether the same batch may well succeed if it is simply done again."""
        ...

    def release(self) -> None:
        """Let go of what was taken for the whole program, such as the lock file."""
        ...


@dataclass(slots=True)
class _Job:
    op: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], object] | None
    pending: Pending[Any]
    failed: Callable[[Exception], object] | None = None
    key: str = ""
    number: int = 0
    """Of reads: in which order they were asked for."""


class Engine:
    """A store on any database. `close` does what is queued first."""

    def __init__(self, host: Host, database: Database, *, queued: int) -> None:
        self._host = host
        self.database = database
        self._most = queued
        self._closed = False
        self._reads: deque[_Job] = deque()
        self._numbers = count()
        self._writers: list[_Writer] = []
        self._readers: list[_Reader] = []
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
        self, op: Callable[..., T], *args: Any, key: str = "", then: Callable[[T], object] | None = None,
        failed: Callable[[Exception], object] | None = None,
    ) -> Pending[T]:  # fmt: skip
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
        for reader in self._readers:  # whoever is idle takes it
            reader.pump.ring()
        self._check_in_time(job)
        return job.pending

    def listen(self, died: Callable[[Sequence[DeadLetter]], object]) -> None:
        for writer in self._writers:
            writer.died = died

    def pace(self) -> Pace:
        batches = Histogram(SIZES)
        for writer in self._writers:
            batches.counts = [a + b for a, b in zip(batches.counts, writer.batches.counts, strict=True)]
            batches.total += writer.batches.total
        return Pace(sum(len(writer.queue) for writer in self._writers), len(self._reads), batches)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # The writers last: of SQLite only the last one to leave, and only one that may write, clears up behind itself.
        parts: list[_Writer | _Reader] = [*self._readers, *self._writers]
        for part in parts:
            part.pump.close()
            part.step()
            part.connection.close()
        self.database.release()

    def _check_in_time(self, job: _Job) -> None:
        """Closed while it was being queued, it may never be done: nobody shall wait for it."""
        if self._closed:
            job.pending.fail(Unavailable("this Roost is closed"))

    def _check_open(self) -> None:
        if self._closed:
            raise Unavailable("this Roost is closed")


class _Writer:
    """Takes what is queued, up to a batch at a time, and commits it."""

    def __init__(self, host: Host, database: Database, connection: Connection, name: str) -> None:
        self.queue: deque[_Job] = deque()
        self.died: Callable[[Sequence[DeadLetter]], object] = bool
        """Told of letters that have died."""
        self.connection = connection
        self._host = host
        self._database = database
        self.batches = Histogram(SIZES)
        self.pump = host.pump(name, self.step)

    def step(self) -> None:
        queue = self.queue
        while queue:
            batch = [queue.popleft() for _ in range(min(len(queue), BATCH))]
            if len({job.key for job in batch}) == len(batch):  # in whatever order: the like leave rows for each other
                batch.sort(key=lambda job: job.op.__name__)
            self._commit(batch)
            self.batches.add(len(batch))

    def _commit(self, batch: list[_Job], *, again: bool = True) -> None:
        try:
            results = self._attempt(batch)
        except _DoubtfulError as doubt:  # done again, it might be done twice
            for job in batch:
                _fail(job, doubt.cause, self._database)
            return
        except Exception as error:  # whatever it is, whoever waits must hear of it
            if again and self._database.may_retry(error):
                self._commit(batch, again=False)
            elif len(batch) == 1:
                _fail(batch[0], error, self._database)
            else:
                for job in batch:
                    self._commit([job])
            return
        died, self.connection.died = self.connection.died, []
        # First those who have something to do, then those who wait: an answer begins before its asker goes on.
        with self._host.together():
            for job, result in zip(batch, results, strict=True):
                if job.then is not None and type(result) is not _Refused:
                    _follow(job.then, result, job.op.__name__)
            if died:
                _follow(self.died, died, "bury")
        with self._host.together():
            for job, result in zip(batch, results, strict=True):
                _tell(job, result)

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
        """Jobs of one operation."""
        many = together.many_of(jobs[0].op, [job.key for job in jobs])
        if many is None:
            return [self._do(job) for job in jobs]
        done = many(self.connection, [job.args for job in jobs])
        return [self._do(job) if result is None else result for job, result in zip(jobs, done, strict=True)]

    def _do(self, job: _Job) -> Any:
        """A refusal before anything was written harms no one else in the batch, and is kept as the result."""
        connection = self.connection
        connection.wrote = False
        try:
            return job.op(connection, *job.args)
        except RoostError as refusal:
            if connection.wrote:
                raise
            return _Refused(refusal)


class _Reader:
    """Takes reads from the queue all readers share, as many as there are in one transaction."""

    def __init__(
        self, host: Host, database: Database, connection: Connection, queue: deque[_Job], numbers: count[int], name: str
    ) -> None:  # fmt: skip
        self.connection = connection
        self._queue = queue
        self._numbers = numbers
        self._database = database
        self.pump = host.pump(name, self.step)

    def step(self) -> None:
        while (job := self._next()) is not None:
            if (left := self._read_together(job)) is not None:
                self._read(left)

    def _next(self) -> _Job | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _read_together(self, job: _Job | None) -> _Job | None:
        """This one and those behind it; one that is left, because it failed or came too late, is done by itself.

        What was written when they were asked for must be seen: so all of them were, when the transaction begins.
        """
        number = next(self._numbers)
        with suppress(Exception):  # whoever waits hears of it, if it fails by itself too
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
        except Exception as error:  # whoever waits must hear of it
            if again and self._database.may_retry(error):
                self._read(job, again=False)
            else:
                _fail(job, error, self._database)
            return
        job.pending.set(result)


class _DoubtfulError(Exception):
    """Whether the commit was done is not known."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(slots=True)
class _Refused:
    error: RoostError


def _follow(then: Callable[[Any], object], result: Any, operation: str) -> None:
    try:
        then(result)
    except Exception:  # committed is committed: a failing listener must not undo it for whoever waits
        log.exception("what follows a commit has failed", extra={"operation": operation})


def _tell(job: _Job, result: Any) -> None:
    if type(result) is _Refused:
        job.pending.fail(result.error)
        if job.failed is not None:
            job.failed(result.error)
    else:
        job.pending.set(result)


def _fail(job: _Job, error: Exception, database: Database) -> None:
    told = error if isinstance(error, RoostError) else database.translate(error)
    if isinstance(error, UnicodeEncodeError):  # whoever tried again would do so for ever
        told = Invalid("it contains half of a surrogate pair, which no store keeps")
    if told is None:
        log.error("an operation of the store has failed", exc_info=error, extra={"operation": job.op.__name__})
        told = Unavailable("the store could not do this; the log says why")
    if told is not error:
        told.__cause__ = error
    job.pending.fail(told)
    if job.failed is not None:
        job.failed(told)
