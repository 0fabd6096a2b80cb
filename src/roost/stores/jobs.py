"""Operations that wait in the queues of the engine, and the threads with a connection that execute them."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from roost.core.monitoring.facts import FactRow
from roost.errors import Invalid, RoostError, Unavailable
from roost.ports import Host, Pending
from roost.stores.database import Connection, Database

log = logging.getLogger("roost.store")


@dataclass(slots=True)
class Job:
    op: Callable[..., Any]
    args: tuple[Any, ...]
    then: Callable[[Any], object] | None
    pending: Pending[Any]
    failed: Callable[[Exception], object] | None = None
    key: str = ""
    number: int = 0
    """Order in which reads were requested."""
    facts: Callable[[Any], Sequence[FactRow]] | None = None


class Connected(ABC):
    """Thread with a connection, which it opens when it needs it."""

    def __init__(self, host: Host, database: Database, name: str, *, read_only: bool) -> None:
        self._database = database
        self._read_only = read_only
        self._connection: Connection | None = None
        self.pump = host.pump(name, self.step)

    @property
    def connection(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.connect(read_only=self._read_only)
        return self._connection

    def is_without_connection(self, error: Exception) -> bool:
        """Return whether it failed because there is no connection, so that other operations would fail too."""
        return self._connection is None or self._database.is_disconnected(error)

    @abstractmethod
    def step(self) -> None:
        """Execute what is queued."""

    def close(self) -> None:
        self.pump.close()
        self.step()
        if self._connection is not None:
            self._connection.close()


def fail(job: Job, error: Exception, database: Database) -> None:
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
