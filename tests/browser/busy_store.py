"""A store with a day of figures, and something of all that the monitor shows."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import roost
from roost.core.monitoring.figures import NARROW, FigureName, bin_of
from roost.hosts.pending import drive
from roost.stores.sql import figures
from roost.stores.sql.figures import FigureRow
from tests.conftest import eventually

NASTY = "<img src=http://pictures.example/a.png onerror=alert(1)> **bold** :smile:"
AGENTS = ("planner", "researcher", "writer", "critic", "archivist", "watcher")
EDGES = (
    ("user", "planner", 40),
    ("planner", "researcher", 120),
    ("planner", "writer", 90),
    ("researcher", "planner", 110),
    ("writer", "critic", 75),
    ("critic", "writer", 60),
    ("writer", "archivist", 30),
    ("watcher", "planner", 12),
    ("archivist", "user", 8),
    ("others", "researcher", 5),
)


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    """`fail` fails."""
    if turn.text.startswith("fail"):
        raise ValueError("broken inside")
    yield "done"


def fill(file: Path, user: str) -> str:
    """Fill a new store for this user; return the id of a run that has failed."""
    with roost.open(f"sqlite:///{file}", brains={"steered": worker}) as service:
        for name in AGENTS:
            service.agents.create(user, name, profile="steered", max_attempts=1)
        for number in range(3):
            service.tasks.wait(user, service.tasks.send(user, "writer", f"fail {number} {NASTY}"))
        service.mail.send(user, "agent:critic", "Draft", "Please read it")
        service.agents.sleep(user, "archivist", 7_200)
        service.agents.stop(user, "watcher")
        for number in range(3):
            service.events.publish(user, "orders.new", {"order": number, "note": NASTY}, optional=True)
        service.events.publish(user, "alerts.disk", {"free": "2 GB"})
        letter = eventually(lambda: service.dead_letters.list(user, kind="task"))[0]
        rows = list(_figures(user, int(time.time()) // NARROW * NARROW))
        drive(_write(service, rows))
        assert letter.run_id
        return letter.run_id


async def _write(service: roost.AgentService, rows: list[FigureRow]) -> None:
    for start in range(0, len(rows), 2_000):
        await service.roost.context.store.write(figures.add, rows[start : start + 2_000])


def _figures(user: str, now: int) -> Iterator[FigureRow]:
    for age in range(6 * 60):  # one bucket per minute
        start = now - 60 - age * 60
        wave = 1 + math.sin(age / 17) * 0.6 + math.sin(age / 3) * 0.2
        busy = max(0, round(4 * wave))
        for kind, share in (("talk", 1), ("task", 3), ("mail", 1), ("message", 4)):
            if count := busy * share // 3:
                seconds = (0.02, 0.4, 3.0, 12.0)[(age + share) % 4]
                yield FigureRow(user, FigureName.RUNS, start, kind, bin_of(seconds), count, count * seconds)
                waited = 0.004 * (1 + age % 5)
                yield FigureRow(user, FigureName.WAITED, start, kind, bin_of(waited), count, count * waited)
        yield FigureRow(user, FigureName.TOKENS, start, "input", 0, 1, 900.0 * busy)
        yield FigureRow(user, FigureName.TOKENS, start, "output", 0, 1, 300.0 * busy)
        yield FigureRow(user, FigureName.COST, start, "steered", 0, 1, 0.002 * busy)
        yield FigureRow(user, FigureName.QUEUE, start, "", 0, 1, float(max(0, busy * 2 - 6)))
        for state, number in (("idle", 4), ("active", busy // 3), ("sleeping", 1 + age // 60 % 2), ("stopped", 1)):
            yield FigureRow(user, FigureName.AGENTS, start, state, 0, 1, float(number))
        if age % 11 == 0:
            yield FigureRow(
                user, FigureName.ERRORS, start, "rate_limit" if age % 2 else "internal", 0, 1 + age % 3, 1.0
            )
        if age % 7 == 0:
            yield FigureRow(user, FigureName.LATENESS, start, "", bin_of(0.003), 1, 0.003)
    for sender, recipient, count in EDGES:
        ends = (_address(user, one) for one in (sender, recipient))
        yield FigureRow(user, FigureName.SENT, now - 120, "\n".join(ends), 0, count, float(count))


def _address(user: str, name: str) -> str:
    return {"user": f"user:{user}", "others": "others"}.get(name, f"agent:{user}/{name}")
