"""T5: a read that finds nothing new asks nothing of the store."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

import roost
from roost.hosts.pending import drive
from roost.ports import Loop
from roost.runtime.dispatch.timers import Timers
from roost.runtime.limits.origin_budgets import OriginBudgets
from roost.runtime.supervisor import Supervisor
from roost.stores.engine import Engine
from roost.stores.sqlite import SqliteConnection
from tests.brains_for_tests import Puppet
from tests.conftest import Open, eventually, settled

SELDOM = roost.Limits(drain=0.5, stop_patience=0.3, checkpoint_every=3_600)
"""No checkpoint comes by itself while a test counts."""
READS = 1_000


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that is asked of the store, by anyone but the supervisor and the waker, who look now and then."""
    seen: list[str] = []

    def listen(owner: type, name: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def heard(self: object, what: object, *args: Any, **options: Any) -> Any:
            seen.append(f"{owner.__name__}.{name}: {what}")
            return original(self, what, *args, **options)

        monkeypatch.setattr(owner, name, heard)

    async def no_look(self: object) -> None:
        return

    async def no_timers(self: Timers, loop: Loop) -> None:
        self._bell = asyncio.Event()
        await self._bell.wait()

    monkeypatch.setattr(OriginBudgets, "load", no_look)
    monkeypatch.setattr(Supervisor, "_sweep", no_look)
    monkeypatch.setattr(Supervisor, "_sweep_agents", no_look)
    monkeypatch.setattr(Timers, "_main", no_timers)
    for owner, names in ((SqliteConnection, ("read", "one", "write")), (Engine, ("read", "write"))):
        for name in names:
            listen(owner, name)
    return seen


def opened(service: Open, puppet: Puppet) -> roost.AgentService:
    """Open a Roost and wait until it has looked for the traces of a death."""
    roosted = service({"puppet": puppet}, limits=SELDOM)
    eventually(lambda: roosted.roost.context.recovered.done)
    return roosted


def read(service: roost.AgentService, talk: str, way: str, cursor: str) -> roost.Page:
    if way == "coroutine":
        return drive(service.asynchronous.get_messages("ann", talk, after=cursor))
    return service.get_messages("ann", talk, after=str(cursor) if way == "plain" else "".join(cursor))


def reads_find_nothing(service: roost.AgentService, talk: str, way: str, *, running: bool) -> None:
    cursor = service.get_messages("ann", talk).cursor
    for _ in range(READS):
        page = read(service, talk, way, cursor)
        assert (page.messages, page.running, page.more_after) == ((), running, False)
        cursor = page.cursor


WAYS = pytest.mark.parametrize("way", ["plain", "coroutine", "from afar"])


@WAYS
def test_reads_of_an_idle_talk_need_no_query(service: Open, asked: list[str], way: str) -> None:
    roosted = opened(service, Puppet())
    talk = roosted.create_talk_session("ann", profile="puppet")
    roosted.add_message("ann", talk, "hello")
    settled(roosted, "ann", talk)
    assert asked, "the counting itself has to work"
    asked.clear()
    reads_find_nothing(roosted, talk, way, running=False)
    assert asked == []


@WAYS
@pytest.mark.parametrize("said", ["", "part1"])
def test_reads_of_an_answer_that_has_not_grown_ask_nothing_of_the_store(
    service: Open, asked: list[str], way: str, said: str
) -> None:
    puppet, go_on = Puppet(), threading.Event()
    roosted = opened(service, puppet)
    talk = roosted.create_talk_session("ann", profile="puppet")
    puppet.play(talk, *([said] if said else []), go_on.is_set, "part2")
    roosted.add_message("ann", talk, "hello")
    last = said or "hello"
    eventually(lambda: puppet.turns[talk] and roosted.get_messages("ann", talk).messages[-1].content == last)
    asked.clear()
    reads_find_nothing(roosted, talk, way, running=True)
    assert asked == []
    go_on.set()
    assert settled(roosted, "ann", talk)[-1].content == f"{said}part2"
