"""The stores that every contract holds for: a SQLite file and a real PostgreSQL server."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.ports import Pending, Tx
from roost.stores.engine import Engine
from roost.wiring import database
from tests.contracts.plans import plan as plan
from tests.servers import fresh_store, new_store


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A new store of each kind: a file and a database that have their tables."""
    if request.param == "sqlite":
        yield new_store(tmp_path / "contract.db")
    else:
        with fresh_store(request.getfixturevalue("postgres")) as made:
            yield made


class Driven:
    """An engine whose operations are waited for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def write(self, op: Any, *args: Any, **options: Any) -> Any:
        async def run() -> Any:
            return await self.engine.write(op, *args, **options)

        return drive(run())

    def read(self, op: Any, *args: Any) -> Any:
        async def run() -> Any:
            return await self.engine.read(op, *args)

        return drive(run())

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the writer: writes meanwhile wait, and become one batch."""
        holds, go = threading.Event(), threading.Event()

        def hold(tx: Tx) -> None:
            holds.set()
            go.wait(10)

        del self.engine._writers[1:]  # where there are several, one has it all
        held = self.engine.write(hold)
        assert holds.wait(10)
        try:
            yield
        finally:
            go.set()
        drive(_awaited(held))


async def _awaited(pending: Pending[None]) -> None:
    await pending


@pytest.fixture
def store(url: str) -> Iterator[Driven]:
    host = ThreadHost()
    engine = Engine(host, database(url, host.clock.now), queued=10_000)
    yield Driven(engine)
    engine.close()
