"""Readers that are dead, slow or cut off: memory stays bounded, and a reader that returns gets every word once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

import roost
from roost.api.limits import connections
from roost.api.long_texts import MOST
from tests.api.routes.test_streams import events, grown
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually, settled
from tests.faults.raw_http import answer, is_closed, request, sockets

EAGER: dict[str, Any] = {"drain": 0.5, "stop_patience": 0.3, "send_timeout": 2.0}
FAST = roost.Limits(drain=0.5, stop_patience=0.3, request_burst=1e9, address_request_burst=1e9)
LONG = "0123456789abcdef" * 400_000
"""More than a connection between two programs takes unread."""


@pytest.fixture(autouse=True)
def _sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SWEEP", 0.05)


async def long(turn: roost.Turn) -> AsyncIterator[str]:
    yield LONG


async def wordy(turn: roost.Turn) -> AsyncIterator[str]:
    for number in range(int(turn.text)):
        yield f"wört{number} 🐦 "
        await asyncio.sleep(0)


def server(service: Open, **limits: Any) -> Any:
    chosen = roost.Limits(**(EAGER | limits))
    return serving(service({"long": long, "wordy": wordy}, limits=chosen), limits=chosen)


def told(served: Served, profile: str, text: str = "go") -> str:
    talk = served.service.create_talk_session("ann", profile=profile)
    served.service.add_message("ann", talk, text)
    return talk


def stream_of(served: Served, talk: str) -> bytes:
    return request(served, "GET", f"/api/v1/talks/{talk}/stream?follow=true", "ann")


def held(served: Served) -> int:
    return sum(connection.held() for connection in list(served.connections._all))


def test_a_reader_that_reads_nothing_is_aborted_and_its_memory_given_back(service: Open) -> None:
    with server(service) as served:
        talk = told(served, "long")
        settled(served.service, "ann", talk)
        with sockets(served, 8, stream_of(served, talk), buffer=4_096) as dead:
            assert all(answer(one).startswith(b"HTTP/1.1 200") for one in dead)
            eventually(lambda: held(served) > 8 * MOST)  # the fault has fired
            assert held(served) < len(LONG), "of a long text, a part"
            eventually(lambda: len(served.connections) == 0)
            assert served.connections.aborted >= 1  # some are given up by the system already
            assert held(served) == 0
        short = told(served, "wordy", "3")
        with sockets(served, 32, stream_of(served, short)) as more:  # the user's places are free again
            assert all(answer(one).startswith(b"HTTP/1.1 200") for one in more)


def test_dead_readers_together_hold_a_bounded_memory_before_their_time_is_over(service: Open) -> None:
    with server(service, send_timeout=60, connections_mib=0.5) as served:
        talk = told(served, "long")
        settled(served.service, "ann", talk)
        with sockets(served, 12, stream_of(served, talk), buffer=4_096) as dead:
            assert sum(answer(one).startswith(b"HTTP/1.1 200") for one in dead) >= 1
            eventually(lambda: served.connections.aborted >= 4)
            eventually(lambda: held(served) <= 2**19)
            with served.browser("bob") as bob:
                assert bob.get("/api/v1/talks").status_code == 200


def test_a_slow_reader_gets_every_word(service: Open) -> None:
    with server(service) as served:
        talk = told(served, "long")
        settled(served.service, "ann", talk)
        asked = request(served, "GET", f"/api/v1/talks/{talk}/stream", "ann")
        with sockets(served, 1, asked, buffer=65_536) as (slow,):
            got, pause = b"", asyncio.Event()

            async def read() -> None:
                """A little every now and then, for longer than a reader may rest."""
                nonlocal got
                while b"event: end" not in got[-1_000:]:
                    got += slow.recv(200_000)
                    try:
                        await asyncio.wait_for(pause.wait(), 0.09)
                    except TimeoutError:
                        continue

            asyncio.run(read())
        assert got.count(b"0123456789abcdef") == 400_000
        assert served.connections.aborted == 0


def test_a_browser_tab_that_is_gone_without_a_word_is_noticed(service: Open) -> None:
    with server(service) as served:
        talk = told(served, "wordy", "3")
        with sockets(served, 5, stream_of(served, talk)) as tabs:
            assert all(answer(one).startswith(b"HTTP/1.1 200") for one in tabs)
            assert not any(is_closed(one) for one in tabs)
        eventually(lambda: len(served.connections) == 0)


def read_in_pieces(served: Served, talk: str, every: int, heard: Callable[[], object]) -> tuple[dict[int, str], int]:
    """Read a talk to its end by a stream that is cut after this many events; the texts, and how often it was cut."""
    texts: dict[int, str] = {}
    cursor: str | None = None
    cuts = 0
    with served.browser("ann") as ann:
        for _ in range(2_000):
            headers = {"Last-Event-ID": cursor} if cursor else {}
            with ann.stream("GET", f"/api/v1/talks/{talk}/stream", headers=headers) as response:
                for number, (kind, event_id, data) in enumerate(events(response), 1):
                    if kind == "end":
                        return texts, cuts
                    grown(texts, data)
                    heard()
                    cursor = event_id
                    if number == every:
                        break
            cuts += 1
    pytest.fail("the stream has no end")


@pytest.mark.parametrize("every", [1, 2, 3, 7, 20, 50])
def test_a_stream_that_is_cut_again_and_again_has_every_word_once(service: Open, every: int) -> None:
    _cut(service, every, words=160)


@pytest.mark.soak
@pytest.mark.parametrize("every", range(1, 51))
def test_a_stream_that_is_cut_every_few_chunks_for_long(service: Open, every: int) -> None:
    _cut(service, every, words=2_000)


def _cut(service: Open, every: int, words: int) -> None:
    heard = threading.Semaphore()

    async def paced(turn: roost.Turn) -> AsyncIterator[str]:
        """Say two words more for each event that was read."""
        for number in range(words):
            yield f"wört{number} 🐦 "
            while number % 2 and not heard.acquire(blocking=False):  # noqa: ASYNC110 — released on another thread
                await asyncio.sleep(0.001)

    with serving(service({"paced": paced}, limits=FAST), limits=FAST) as served:
        talk = told(served, "paced")
        texts, cuts = read_in_pieces(served, talk, every, heard.release)
        stored = {m.seq: m.content for m in served.service.get_messages("ann", talk).messages}
    assert texts == stored
    assert texts[2] == "".join(f"wört{number} 🐦 " for number in range(words))
    assert cuts >= words // 2 // every - 1  # the fault has fired
