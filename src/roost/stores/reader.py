"""Readers of the engine: execute queued reads, as many as there are, in one transaction."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from itertools import count

from roost.ports import Host
from roost.stores.database import Database
from roost.stores.jobs import Connected, Job, fail


class Reader(Connected):
    """Reader thread: takes reads from the shared queue, as many as there are, in one transaction."""

    def __init__(self, host: Host, database: Database, queue: deque[Job], numbers: count[int], name: str) -> None:
        self.is_busy = False
        """False if it is going to look at the queue when it is rung."""
        self._queue = queue
        self._numbers = numbers
        super().__init__(host, database, name, read_only=True)

    def step(self) -> None:
        self.is_busy = True
        try:
            while (job := self._next()) is not None:
                if (left := self._read_batch(job)) is not None:
                    self._read(left)
        finally:
            self.is_busy = False

    def _next(self) -> Job | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _read_batch(self, job: Job | None) -> Job | None:
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

    def _read(self, job: Job, *, again: bool = True) -> None:
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

    def _fail(self, job: Job, error: Exception) -> None:
        """Fail a job; without a connection fail all queued jobs, since each would wait as long."""
        failed = [job]
        if self.is_without_connection(error):
            failed += iter(self._next, None)
        for failed_job in failed:
            fail(failed_job, error, self._database)
