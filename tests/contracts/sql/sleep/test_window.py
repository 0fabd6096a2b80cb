"""A6 on every store: an event and the end of the turn that waits for it, at the same moment, in either order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from roost.core.agents import wake
from roost.core.envelopes.effects import Publish
from roost.core.runs import Closing, Verdict
from roost.core.values.priority import Priority
from roost.hosts.pending import drive
from roost.ports import Pending, Tx
from roost.stores.sql import settlement
from roost.stores.sql.sending import effects
from roost.stores.sql.tables import envelopes
from tests.contracts.conftest import Driven
from tests.contracts.sql.test_events import create, dead, envelope, take

BEGAN, SOON = f"{1_000:012x}{0:013x}", f"{2_000:012x}{0:013x}"


def published(tx: Tx) -> None:
    effects.post(tx, Publish(f"event_{SOON}", "ann", "ready", None, Priority.NORMAL, "user:ann", 2.0))


def slept(key: str) -> Callable[[Tx], None]:
    asleep = wake.to_json(wake.event("ready"))

    def settle(tx: Tx) -> None:
        closing = Closing(f"run_{BEGAN}", envelope(key, 1), 0, Verdict.DONE, "", 1.0, 3.0, sleep=asleep, journaled=True)
        [settled] = settlement.settle(tx, (closing,))
        assert settled.taken

    return settle


def at_the_same_moment(store: Driven, first: Callable[[Tx], None], second: Callable[[Tx], None]) -> None:
    """Both on writers of their own, if there are several; the first commits when the second is under way."""
    holds, go, begun = threading.Event(), threading.Event(), threading.Event()

    def held(tx: Tx) -> None:
        first(tx)
        holds.set()
        begun.wait(0.3)  # where one writer does both, the second begins only afterwards
        go.wait(0.2)  # and gets as far as it can

    def after(tx: Tx) -> None:
        begun.set()
        second(tx)

    one = store.engine.write(held, key="b")
    assert holds.wait(10)
    two = store.engine.write(after, key="a")
    for pending in (one, two):
        drive(_awaited(pending))


async def _awaited(pending: Pending[Any]) -> None:
    await pending


@pytest.mark.parametrize("event_first", [True, False], ids=["event first", "sleep first"])
def test_an_event_and_the_end_of_the_turn_at_the_same_moment(store: Driven, event_first: bool) -> None:
    key = create(store, "d")
    store.write(lambda tx: envelopes.put(tx, envelope(key, 1)))
    sleep = slept(key)
    first, second = (published, sleep) if event_first else (sleep, published)
    at_the_same_moment(store, first, second)
    taken = take(store, key)
    assert (taken.woken, [e.body for e in taken.envelopes], dead(store)) == (
        "event ready",
        ['{"event_id": "event_' + SOON + '", "name": "ready", "data": null}'],
        [],
    )
