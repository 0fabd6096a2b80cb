"""The stores that every contract holds for: a SQLite file and a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from roost.hosts.pending import drive
from roost.hosts.threads import ThreadHost
from roost.stores.engine import Database, Engine
from roost.wiring import database
from tests.servers import fresh_database, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """An empty store of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/contract.db"
    else:
        with fresh_database(request.getfixturevalue("postgres")) as made:
            yield made


@pytest.fixture
def raw_store(url: str) -> Iterator[Database]:
    host = ThreadHost()
    found = database(url, host.clock.now)
    yield found
    found.release()


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


@pytest.fixture
def store(url: str) -> Iterator[Driven]:
    host = ThreadHost()
    engine = Engine(host, database(url, host.clock.now), queued=10_000)
    yield Driven(engine)
    engine.close()
