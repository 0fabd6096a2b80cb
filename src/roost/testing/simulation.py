"""A whole Roost on one deterministic loop, on a real SQLite file, with power cuts where you want them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, TypeVar

from roost.brains.profiles import Shelf
from roost.core.limits import Limits
from roost.hosts.simulated import Crash, SimulatedHost, VirtualClock
from roost.ports import Brain
from roost.runtime.roost import Roost
from roost.service import AsyncAgentService
from roost.stores.engine import Engine
from roost.stores.sqlite import Sqlite, SqliteConnection
from roost.wiring import STATEMENTS

T = TypeVar("T")


class Simulation:
    """Starts, runs and crashes a Roost; the file and the clock outlive each crash.

    simulation = Simulation(folder, seed=1)
    service = simulation.start({"parrot": parrot})
    simulation.run(scenario(service))        # raises Crash where one was planned
    """

    def __init__(self, folder: Path, seed: int = 0) -> None:
        self.clock = VirtualClock()
        self.path = folder / "simulated.db"
        self._seed = seed
        self._starts = 0
        self.database: FaultySqlite | None = None
        self.host: SimulatedHost | None = None

    def start(self, brains: Mapping[str, Brain], limits: Limits | None = None) -> AsyncAgentService:
        """Open the Roost on the file, as after a start of the machine."""
        limits = limits or Limits()
        self._starts += 1
        self.host = SimulatedHost(self._seed * 1000 + self._starts, clock=self.clock)
        self.database = FaultySqlite(self.path, self.host.clock.now)
        store = Engine(self.host, self.database, queued=limits.queued_writes)
        return AsyncAgentService(Roost(self.host, store, STATEMENTS, Shelf(brains), limits))

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run until the scenario has ended. A planned crash cuts the power and is raised as Crash."""
        assert self.host is not None
        try:
            return self.host.run(scenario)
        except Crash:
            self.crash()
            raise

    def crash(self) -> None:
        """Cut the power: what was not committed is gone, and nothing of the old world runs any more."""
        assert self.database is not None
        assert self.host is not None
        self.host.crash()
        self.database.cut()
        self.host = self.database = None


class FaultySqlite(Sqlite):
    """SQLite that crashes or fails at a commit of your choice, counted from 1."""

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self.commits = 0
        self.crash_before: int | None = None
        self.crash_after: int | None = None
        self.failing: Callable[[int], bool] = lambda _: False
        self._connections: list[SqliteConnection] = []
        super().__init__(path, now)
        self.commits = 0  # those that made the schema do not count

    def connect(self, *, read_only: bool) -> SqliteConnection:
        connection = _FaultyConnection(self, self.path, self._now, read_only=read_only)
        self._connections.append(connection)
        return connection

    def cut(self) -> None:
        for connection in self._connections:
            connection.close()
        self.release()


class _FaultyConnection(SqliteConnection):
    def __init__(self, database: FaultySqlite, path: Path, now: Callable[[], float], *, read_only: bool) -> None:
        super().__init__(path, now, read_only=read_only)
        self._database = database

    def commit(self) -> None:
        database = self._database
        database.commits += 1
        if database.commits == database.crash_before:
            raise Crash
        if database.failing(database.commits):
            error = sqlite3.OperationalError("database or disk is full")
            error.sqlite_errorcode = sqlite3.SQLITE_FULL
            raise error
        super().commit()
        if database.commits == database.crash_after:
            raise Crash
