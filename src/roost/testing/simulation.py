"""A whole Roost on one deterministic loop, on a real SQLite file, with faults by the seed and power cuts anywhere."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

from roost.brains.profiles import Shelf
from roost.core.limits import Limits
from roost.hosts.simulated import Crash, SimulatedHost, Stuck
from roost.ports import Brain, Tool
from roost.runtime.roost import Roost
from roost.service import AsyncAgentService
from roost.stores.engine import Engine
from roost.testing.brains import Given, watched
from roost.testing.clock import Clock
from roost.testing.database import FaultySqlite
from roost.testing.faults import Chaos, Faults
from roost.wiring import STATEMENTS

T = TypeVar("T")
Story = Callable[[AsyncAgentService], Coroutine[Any, Any, T]]

WAITING = """
SELECT i.kind, i.address, i.lane, i.envelope_id FROM inbox i LEFT JOIN agents a ON a.address = i.address
WHERE a.address IS NULL OR (a.state = 'idle' AND a.paused = 0)
"""


class Simulation:
    """Starts, runs and crashes a Roost; the file and the clock outlive each crash. The same seed, the same run.

    with Simulation(seed=7, faults=Faults.all()) as simulation:
        simulation.play(story, {"parrot": parrot})

    A `story` is a coroutine function over the service. Without a folder the file is in a scratch one.
    """

    def __init__(
        self, folder: Path | None = None, seed: int = 0, *, faults: Faults | None = None, clock: Clock | None = None
    ) -> None:  # fmt: skip
        self.seed = seed
        self.faults = faults or Faults()
        self.clock = clock or Clock()
        self._scratch = None if folder is not None else TemporaryDirectory(prefix="roost-simulation-")
        self.path = Path(self._scratch.name if self._scratch is not None else str(folder)) / "simulated.db"
        self._chaos = Chaos(self.faults, seed, self.clock)
        self._starts = 0
        self._steps: list[tuple[int, int]] = []
        self.turns: list[Given] = []
        """What brains were given, in order, in all lives."""
        self.service: AsyncAgentService
        self.database: FaultySqlite | None = None
        self.host: SimulatedHost | None = None

    def __repr__(self) -> str:
        return f"Simulation(seed={self.seed!r}, faults={self.faults!r})"

    # --- running ---------------------------------------------------------------------------------

    def start(
        self, brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> AsyncAgentService:  # fmt: skip
        """Open the Roost on the file, as after a start of the machine."""
        limits = limits or Limits()
        self._starts += 1
        self.host = SimulatedHost(self._seed_of_life(), clock=self.clock)
        self.database = FaultySqlite(
            self.path, self.host.clock.now, self._chaos.commit, lambda: len(self.turns), self._chaos.post
        )  # fmt: skip
        store = Engine(self.host, self.database, queued=limits.queued_writes)
        observed = {name: watched(brain, self.turns.append) for name, brain in brains.items()}
        roost = Roost(self.host, store, STATEMENTS, Shelf(observed), limits, tools=tools)
        self._chaos.meddle(roost, self.host)
        self.service = AsyncAgentService(roost)
        return self.service

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run until the scenario has ended. A crash cuts the power and is raised as Crash."""
        with self._watched() as host:
            return host.run(scenario)

    def play(
        self, story: Story[T], brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> T:  # fmt: skip
        """Run the story from its beginning, after each crash once more, until it has ended; then let all come to rest.

        So a story is written as a program that may be started again: what it sends has keys. See `insist`.
        """
        while True:
            try:
                result = self.run(story(self.start(brains, limits, tools)))
                self.rest()
                return result
            except Crash:
                continue

    def rest(self, within: float = 3600.0) -> None:
        """Nothing goes wrong any more, and everything runs until nothing is left for anyone who may work.

        Stuck, with what is left, if that takes longer than so many simulated seconds.
        """
        assert self.host is not None
        self._chaos.end()
        latest = self.clock.monotonic() + within
        while left := self.rows(WAITING):
            if self.clock.monotonic() > latest:
                raise self.explain(Stuck(f"{len(left)} still wait after {within:g} s: {left[:3]}"))
            self.advance(1.0)

    def advance(self, seconds: float) -> None:
        """Let everything run for so long."""
        with self._watched() as host:
            host.advance(seconds)

    @contextmanager
    def _watched(self) -> Iterator[SimulatedHost]:
        """What is raised meanwhile cuts the power, if it is a crash, or else says how to repeat it."""
        assert self.host is not None
        try:
            yield self.host
        except Crash:
            self.crash()
            raise
        except BaseException as error:
            self.explain(error)
            raise

    def crash(self) -> None:
        """Cut the power: what was not committed is gone, and nothing of the old world runs any more."""
        assert self.database is not None
        assert self.host is not None
        self._steps.append((self.host.steps, self.host.trace))
        self.host.crash()
        self.database.cut()
        self.host = self.database = None

    def close(self) -> None:
        """As a crash; and the scratch folder is removed."""
        if self.host is not None:
            self.crash()
        if self._scratch is not None:
            self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.explain(error)
        self.close()

    # --- looking ---------------------------------------------------------------------------------

    @property
    def happened(self) -> Counter[str]:
        """How often each fault was brought about."""
        return self._chaos.happened

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the file holds, read past the simulation."""
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def digest(self) -> str:
        """Stands for the whole run: each step of it, and all rows there are. The same seed gives the same."""
        digest = sha256(repr(self._steps).encode())
        if self.host is not None:
            digest.update(repr((self.host.steps, self.host.trace)).encode())
        for (table,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
            digest.update(repr((table, sorted(self.rows(f"SELECT * FROM {table}"), key=repr))).encode())
        return digest.hexdigest()

    def explain(self, error: BaseException) -> BaseException:
        """The same error, with how to repeat it."""
        note = f"Repeat it with {self!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error

    def _seed_of_life(self) -> int:
        return self.seed * 1000 + self._starts
