"""A client that reads slowly: it has little memory in the server, is notified, and continues by its cursor."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from websockets.sync.client import connect
from websockets.sync.connection import Connection

import roost
from roost.api import long_texts, subscriptions
from tests.api.routes.test_streams import events
from tests.api.rpc.connection import Client, opened
from tests.api.rpc.test_subscriptions import Text
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually

CHUNKS, CHUNK = 600, "0123456789abcdef" * 256


async def wordy(turn: roost.Turn) -> AsyncIterator[str]:
    for _ in range(CHUNKS):
        yield CHUNK
        await asyncio.sleep(0.001)


@pytest.fixture
def busy(service: Open, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setattr(subscriptions, "DELAYED", 0.05)
    with serving(service({"wordy": wordy})) as served:
        yield served


@contextmanager
def slow_socket(served: Served) -> Iterator[Connection]:
    """A connection that takes nothing from the network unless it is asked to."""
    with socket.socket() as plain:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        plain.connect(("127.0.0.1", int(served.url.rpartition(":")[2])))
        cookie = f"{served.identity.cookie_name}={served.identity.cookie('ann')}"
        headers = {"Origin": served.url, "Cookie": cookie}
        url = served.url.replace("http", "ws") + "/rpc"
        with connect(url, sock=plain, additional_headers=headers, max_queue=1, close_timeout=0.1, proxy=None) as client:
            yield client


def held(served: Served) -> int:
    return max((one.held() for one in list(served.connections._all)), default=0)


def is_over(served: Served, talk: str) -> bool:
    return not served.service.get_messages("ann", talk, limit=1).running


def stalled(served: Served, talk: str) -> None:
    """Wait until the answer is complete, and the connection has been full for some time."""
    eventually(lambda: is_over(served, talk), 30)
    assert held(served) > 0
    since = time.monotonic()
    eventually(lambda: time.monotonic() - since > 0.2)


def test_a_slow_client_is_notified_and_reads_everything(busy: Served) -> None:
    talk = busy.service.create_talk_session("ann", profile="wordy")
    with slow_socket(busy) as plain, opened(busy, "bob") as other:
        client, text, notices = Client(plain), Text(), list[dict[str, Any]]()
        client.call("subscribe", topic="talk", talkSessionId=talk, subscription="mine")
        busy.service.add_message("ann", talk, "go")
        stalled(busy, talk)
        assert Client(other).call("agent.list") == [], "others are answered"
        while len(text.done) < 2:
            message = client.receive()
            if message["method"] == "delayed":
                notices.append(message["params"])
            else:
                text.add(message["params"])
        assert text.messages[2] == CHUNK * CHUNKS
        assert {"subscription", "cursor", "seconds"} == set(notices[0])
        assert notices[0]["seconds"] > 0.05


def test_what_waits_for_a_slow_client_is_bounded_and_another_connection_continues(busy: Served) -> None:
    talk = busy.service.create_talk_session("ann", profile="wordy")
    text = Text()
    with slow_socket(busy) as plain:
        client = Client(plain)
        client.call("subscribe", topic="talk", talkSessionId=talk)
        busy.service.add_message("ann", talk, "go")
        stalled(busy, talk)
        assert held(busy) < len(CHUNK) * CHUNKS / 4, "what is written meanwhile waits in the store"
        text.add(client.event())
    with opened(busy) as socket_:
        resumed = Client(socket_)
        resumed.call("subscribe", topic="talk", talkSessionId=talk, after=text.cursor)
        while len(text.done) < 2:
            text.add(resumed.event())
    assert text.messages[2] == CHUNK * CHUNKS


def test_a_long_text_comes_in_parts_and_is_continued_after_each(service: Open) -> None:
    async def echo(turn: roost.Turn) -> AsyncIterator[str]:
        yield turn.text

    with serving(service({"echo": echo})) as served:
        talk = served.service.create_talk_session("ann", profile="echo")
        said = ["short", "wört🐦" * 60_000, "last"]
        for one in said:
            served.service.add_message("ann", talk, one)
            eventually(lambda: is_over(served, talk))
        seen = list(_all_events(served, talk, None))
        assert len(seen) > 4 + 2 * (len(said[1]) // long_texts.MOST)
        for number in range(len(seen)):
            text = Text()
            for event in [*seen[: number + 1], *_all_events(served, talk, seen[number]["cursor"])]:
                text.add(event)
            assert [text.messages[seq] for seq in range(1, 7)] == [one for one in said for _ in range(2)]


def _all_events(served: Served, talk: str, after: str | None) -> Iterator[dict[str, Any]]:
    """Yield the events of a talk that is over, until its last message is complete."""
    last = served.service.get_messages("ann", talk, limit=1)
    if after == last.cursor:
        return
    with opened(served) as socket_:
        client = Client(socket_)
        client.call("subscribe", topic="talk", talkSessionId=talk, after=after)
        while True:
            event = client.event()
            yield event
            message = event["event"]["message"]
            if (message["seq"], message["status"]) == (last.messages[-1].seq, "complete"):
                return


def test_a_slow_reader_of_a_stream_is_notified(busy: Served) -> None:
    talk = busy.service.create_talk_session("ann", profile="wordy")
    with busy.browser("ann") as ann, ann.stream("GET", f"/api/v1/talks/{talk}/stream?follow=true") as response:
        busy.service.add_message("ann", talk, "go")
        stalled(busy, talk)
        seen, length = set[str](), 0
        for kind, _, data in events(response):
            seen.add(kind)
            if kind == "change" and data["message"]["sender"] == "agent":
                length += len(data["text"])
                if data["message"]["status"] == "complete":
                    break
            elif kind == "delayed":
                assert json.loads(json.dumps(data))["seconds"] > 0.05
        assert "delayed" in seen
        assert length == len(CHUNK) * CHUNKS
