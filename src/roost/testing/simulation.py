"""Simulation of a whole Roost on a deterministic host and a real SQLite file, with faults and power losses by seed."""

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

from roost.brains.profiles import ProfileRegistry
from roost.core.limits.limits import Limits
from roost.core.values.addresses import parse
from roost.hosts.simulated import Crash, SimulatedHost, Stuck
from roost.ports import Brain, Poster, Tool
from roost.runtime.roost import Roost
from roost.service import AsyncAgentService
from roost.stores.engine import Engine
from roost.testing.brains import Given, watched
from roost.testing.clock import Clock
from roost.testing.faults import Chaos, Faults
from roost.testing.faulty_sqlite import HEAL, FaultySqlite

T = TypeVar("T")
Story = Callable[[AsyncAgentService], Coroutine[Any, Any, T]]

WAITING = """
SELECT i.kind, i.address, i.lane, i.envelope_id FROM inbox i LEFT JOIN agents a ON a.address = i.address
WHERE a.address IS NULL OR (a.state = 'idle' AND a.paused = 0)
"""


IN_INBOXES = "SELECT 1 FROM inbox WHERE status <> 'parked' LIMIT 1"


class Simulation:
    """Roost that can be run and crashed; file and clock outlive each crash. The same seed gives the same run.

    with Simulation(seed=7, faults=Faults.all()) as simulation:
        simulation.play(story, {"parrot": parrot})

    A `story` is a coroutine function over the service. Without a folder the file is in a temporary one.
    """

    def __init__(
        self,
        folder: Path | None = None,
        seed: int = 0,
        *,
        faults: Faults | None = None,
        clock: Clock | None = None,
        poster: Poster | None = None,
    ) -> None:
        self.seed = seed
        self.faults = faults or Faults()
        self.clock = clock or Clock()
        self._poster = poster
        self._scratch = None if folder is not None else TemporaryDirectory(prefix="roost-simulation-")
        self.path = Path(self._scratch.name if self._scratch is not None else str(folder)) / "simulated.db"
        self._chaos = Chaos(self.faults, seed, self.clock)
        self._starts = 0
        self._steps: list[tuple[int, int]] = []
        self.turns: list[Given] = []
        """Turns of all brains, in order, across crashes."""
        self.service: AsyncAgentService
        self.database: FaultySqlite | None = None
        self.host: SimulatedHost | None = None

    def __repr__(self) -> str:
        return f"Simulation(seed={self.seed!r}, faults={self.faults!r})"

    # --- running ---------------------------------------------------------------------------------

    def start(
        self, brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> AsyncAgentService:
        """Open the Roost on the file, as after a boot of the machine."""
        limits = limits or Limits()
        self._starts += 1
        self.host = SimulatedHost(self._seed_of_life(), clock=self.clock)
        self.database = FaultySqlite(
            self.path,
            self.host.clock.now,
            self._chaos.commit,
            lambda: len(self.turns),
            self._chaos.post,
            self._chaos.is_cut,
        )
        store = Engine(self.host, self.database, queued=limits.queued_writes)
        observed = {name: watched(brain, self.turns.append) for name, brain in brains.items()}
        roost = Roost(
            self.host,
            store,
            ProfileRegistry(observed),
            limits,
            tools=tools,
            poster=self._poster,
            notifier=self._chaos.notifier,
        )
        self._chaos.attach(self.host)
        self.host.may_skip = self._is_idle
        self.host.next_due = lambda: _next_due(roost)
        self.service = AsyncAgentService(roost)
        return self.service

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run until the scenario has ended. A crash raises Crash."""
        with self._watched() as host:
            return host.run(scenario)

    def play(
        self, story: Story[T], brains: Mapping[str, Brain], limits: Limits | None = None, tools: Sequence[Tool] = ()
    ) -> T:
        """Run the story, restarted after each crash, until it has ended; then run until no work is left.

        A story must be restartable: what it sends has keys. See `insist`.
        """
        while True:
            try:
                result = self.run(story(self.start(brains, limits, tools)))
                self.rest()
                return result
            except Crash:
                continue

    def rest(self, within: float = 3600.0) -> None:
        """Disable faults, and run until no work is left.

        Raise Stuck, with the remaining work, if that takes longer than `within` simulated seconds.
        """
        assert self.host is not None
        self._chaos.end()
        latest = self.clock.monotonic() + within
        while left := self.rows(WAITING):
            if self.clock.monotonic() > latest:
                raise self.explain(Stuck(f"{len(left)} envelopes are pending after {within:g} s: {left[:3]}"))
            self.advance(1.0)

    def advance(self, seconds: float) -> None:
        """Run everything for `seconds`."""
        with self._watched() as host:
            host.advance(seconds)

    # --- partitions ------------------------------------------------------------------------------

    def cut(self, one: str, other: str, *, both_ways: bool = True) -> None:
        """Partition two agents, such as `agent:ann/a` and `agent:ann/b`, until `heal`; a sender may be a user. Posts of
        meetings between them are lost; everything else waits."""
        for address in (one, other):
            if parse(address, "").text != address:
                raise ValueError(f"{address!r} must be a whole address, such as 'agent:ann/a' or 'user:ann'")
        self._chaos.cuts |= {(one, other), (other, one)} if both_ways else {(one, other)}

    def heal(self) -> None:
        """Heal all partitions; waiting envelopes are delivered within seconds."""
        self._chaos.cuts.clear()
        assert self.host is not None
        self.run(self._deliver_held())

    async def _deliver_held(self) -> None:
        await self.service.roost.context.store.write(lambda tx: tx.write(HEAL))

    @contextmanager
    def _watched(self) -> Iterator[SimulatedHost]:
        """Yield the host; a Crash cuts the power, other errors get a note on how to repeat the run."""
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
        """Cut the power: uncommitted work is gone, and no old task runs any more."""
        assert self.database is not None
        assert self.host is not None
        self._steps.append((self.host.steps, self.host.trace))
        self.host.crash()
        self.database.cut()
        self.host = self.database = None

    def close(self) -> None:
        """Crash, and remove the temporary folder."""
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
        """Return how often each fault was injected."""
        return self._chaos.happened

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Query the file directly, outside of the simulation."""
        connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    def digest(self) -> str:
        """Return a digest of the whole run: each step, and all rows. The same seed gives the same digest."""
        digest = sha256(repr(self._steps).encode())
        if self.host is not None:
            digest.update(repr((self.host.steps, self.host.trace)).encode())
        for (table,) in self.rows("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
            digest.update(repr((table, sorted(self.rows(f"SELECT * FROM {table}"), key=repr))).encode())
        return digest.hexdigest()

    def explain(self, error: BaseException) -> BaseException:
        """Return the error with a note on how to repeat the run."""
        note = f"Repeat it with {self!r}"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        return error

    def _is_idle(self) -> bool:
        """Return whether time may be skipped: with lost notifications, not while an envelope is pending."""
        return self.faults == Faults() or not self.rows(IN_INBOXES)

    def _seed_of_life(self) -> int:
        return self.seed * 1000 + self._starts


def _next_due(roost: Roost) -> float | None:
    """Return when a timer or a request of a webhook is due."""
    parts = (roost.dispatcher.timers, roost.sender)
    return min((part.expected for part in parts if part is not None and part.expected is not None), default=None)
