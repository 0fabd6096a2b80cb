"""C3: a node whose lease ends stops its work before others take it over; it can write nothing then."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from roost import RoostError
from roost.core.cluster.nodes import LeaseTimes, NodeLoad
from roost.ports import Brain, Turn
from roost.runtime.cluster.store_lease import StoreLease
from roost.service import AgentService
from tests.conftest import eventually, everything
from tests.runtime.cluster.brains import until
from tests.runtime.cluster.conftest import Nodes

pytestmark = pytest.mark.postgres

SHORT = LeaseTimes(length=1.5, renewal=0.3, margin=0.5)


@dataclass
class Ledger:
    """Times of all executions of a brain, and on which node."""

    spans: list[tuple[str, float, float]] = field(default_factory=list)
    running: dict[int, tuple[str, float]] = field(default_factory=dict)
    released: threading.Event = field(default_factory=threading.Event)

    def brain(self) -> Brain:
        async def working(turn: Turn) -> AsyncIterator[str]:
            start, key = time.monotonic(), id(turn)
            self.running[key] = (turn.text, start)
            try:
                yield "so far "
                await until(self.released)
                yield turn.text
            finally:
                del self.running[key]
                self.spans.append((turn.text, start, time.monotonic()))

        return working

    def overlaps(self, text: str) -> bool:
        """Return whether two executions for the same message overlap."""
        spans = sorted((start, end) for what, start, end in self.spans if what == text)
        return any(later[0] < earlier[1] for earlier, later in pairwise(spans))


def _end_lease(service: AgentService, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a node fail to renew its lease from now on."""
    node, renew = service.roost.context.node, StoreLease._renew

    async def fail(self: StoreLease, load: NodeLoad) -> None:
        if self._node != node:
            await renew(self, load)

    monkeypatch.setattr(StoreLease, "_renew", fail)


def test_the_talk_of_a_node_without_lease_is_answered_once_elsewhere(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    first, second = nodes.start({"working": ledger.brain()}, 2, times=SHORT)
    talk = first.create_talk_session("ann", profile="working")
    first.add_message("ann", talk, "go")
    eventually(lambda: len(second.get_messages("ann", talk).messages) == 2)
    _end_lease(first, monkeypatch)
    eventually(lambda: second.roost.placement.run_of(talk), 8)
    assert len(ledger.spans) == 1
    ledger.released.set()
    eventually(lambda: not second.get_messages("ann", talk).running, 5)
    assert not ledger.overlaps("go")
    found = everything(second, "ann", talk)
    assert [(m.content, str(m.status)) for m in found] == [
        ("go", "complete"),
        ("so far ", "interrupted"),
        ("so far go", "complete"),
    ]


def test_the_tasks_of_a_node_without_lease_run_again_and_count_no_attempt(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger()
    started = nodes.start({"working": ledger.brain()}, 2, times=SHORT)
    names = [f"d{number}" for number in range(6)]
    for name in names:
        started[0].agents.create("ann", name, profile="working")
    tasks = [started[0].tasks.send("ann", name, name) for name in names]
    eventually(lambda: len(ledger.running) == 6)
    lost = next(one for one in started if one.roost.dispatcher.count)
    [other] = [one for one in started if one is not lost]
    count = lost.roost.dispatcher.count
    _end_lease(lost, monkeypatch)
    eventually(lambda: len(ledger.spans) == count, 5)
    eventually(lambda: other.roost.dispatcher.count == 6, 8)
    ledger.released.set()
    done = [other.tasks.wait("ann", task, timeout=8) for task in tasks]
    assert [(one.status, one.result, one.attempts) for one in done] == [("done", f"so far {n}", 1) for n in names]
    assert not any(ledger.overlaps(name) for name in names)


def test_a_node_without_lease_starts_nothing_new(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger()
    first, second = nodes.start({"working": ledger.brain()}, 2, times=LeaseTimes(1.5, 0.3, 1.0))
    talk = first.create_talk_session("ann", profile="working")
    first.add_message("ann", talk, "go")
    eventually(lambda: ledger.running)
    _end_lease(first, monkeypatch)
    assert first.roost.membership is not None
    membership = first.roost.membership
    eventually(lambda: membership.is_lost, 5)
    eventually(lambda: not ledger.running, 1)
    nodes.network.cut.add(first.roost.context.node)
    second.agents.create("ann", "d", profile="working")
    for act in (
        lambda: first.tasks.send("ann", "d", "task"),
        lambda: first.add_message("ann", talk, "more"),
        lambda: first.add_message("ann", first.create_talk_session("ann", profile="working"), "new"),
    ):
        with contextlib.suppress(RoostError):
            act()
    eventually(lambda: ledger.running, 8)
    ledger.released.set()
    eventually(lambda: not ledger.running, 5)
    assert first.roost.dispatcher.count == 0
    assert all(first.roost.placement.run_of(one) is None for one in first.roost.placement.talk_ids())
    for text in ("go", "task", "go\nmore", "new"):
        assert not ledger.overlaps(text)


def test_a_node_that_was_evicted_can_write_nothing(nodes: Nodes, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = nodes.start({"working": Ledger().brain()}, 2, times=SHORT)
    talk = first.create_talk_session("ann", profile="working")
    _end_lease(first, monkeypatch)
    assert second.roost.membership is not None
    eventually(lambda: len(second.roost.membership.nodes) == 1, 8)  # type: ignore[union-attr]
    for _ in range(3):
        with pytest.raises(RoostError):
            first.add_message("ann", talk, "too late")
    assert everything(second, "ann", talk) == ()
