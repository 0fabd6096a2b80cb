"""A stream that is cut after every 1 to 50 events has the stored text, whichever protocol and client reads it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import cycle
from random import Random

import httpx
import pytest
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect as open_socket

import roost
from roost.client import connect
from tests.api.routes.test_streams import events, grown
from tests.api.rpc.connection import Client
from tests.api.rpc.test_subscriptions import Text
from tests.api.serving import Served, serving
from tests.client import looped, nodes
from tests.client.conftest import Dial
from tests.client.proxy import Proxy, failing
from tests.conftest import Open

WORDS = [f"wört{number} 🐦 " for number in range(110)]
LOST = (OSError, EOFError, WebSocketException, httpx.TransportError)
STORY = """
const [talkSessionId] = given, texts = {};
await roost.talks.addMessage({ talkSessionId, content: "go", key: "once" });
for await (const { message, text, reset } of roost.talks.streamMessages({ talkSessionId })) {
  texts[message.seq] = reset ? text : (texts[message.seq] ?? "") + text;
}
tell(texts);
"""
Texts = dict[int, str]
Reading = Callable[[str, str, str], Texts]
"""Reads a talk until its run ends, with the URL of the server, a token and the id of the talk."""


async def wordy(turn: roost.Turn) -> AsyncIterator[str]:
    for word in WORDS:
        yield word
        await asyncio.sleep(0.001)


@pytest.fixture
def served(service: Open) -> Iterator[Served]:
    limits = {"request_burst": 1e9, "address_request_burst": 1e9}
    with serving(service({"wordy": wordy}), limits=limits) as running:
        yield running


def by_websocket(url: str, token: str, talk: str) -> Texts:
    text = Text()
    address, headers = url.replace("http", "ws") + "/rpc", {"Authorization": f"Bearer {token}"}
    while len(text.done) < 2:
        with (
            suppress(*LOST),
            open_socket(address, additional_headers=headers, proxy=None, compression=None) as socket,
        ):
            client = Client(socket)
            client.call("subscribe", topic="talk", talkSessionId=talk, after=text.cursor)
            while len(text.done) < 2:
                text.add(client.event())
    return text.messages


def by_sse(url: str, token: str, talk: str) -> Texts:
    texts: Texts = {}
    headers, is_over = {"Authorization": f"Bearer {token}"}, False
    address = f"{url}/api/v1/talks/{talk}/stream"
    while not is_over:
        with suppress(*LOST), httpx.stream("GET", address, headers=headers, trust_env=False, timeout=30) as response:
            for kind, event_id, data in events(response):
                is_over = kind == "end"
                if kind == "change":
                    grown(texts, data)
                    headers["Last-Event-ID"] = str(event_id)
    return texts


def by_client(dial: Dial, url: str, token: str, talk: str) -> Texts:
    texts: Texts = {}
    with dial(url, token) as remote:
        for change in remote.stream_messages("ann", talk):
            seq = change.message.seq
            texts[seq] = change.text if change.reset else texts.get(seq, "") + change.text
            assert texts[seq] == change.message.content
    return texts


def by_javascript(url: str, token: str, talk: str) -> Texts:
    """Node starts slowly, so this client sends the message itself."""
    [texts] = nodes.run(STORY, url, token, talk)
    return {int(seq): text for seq, text in texts.items()}


READERS: dict[str, Reading] = {
    "WebSocket": by_websocket,
    "SSE": by_sse,
    "client": partial(by_client, connect),
    "async client": partial(by_client, looped.connect),
    "JavaScript": by_javascript,
}


def check(served: Served, proxy: Proxy, read: Reading, every: list[Callable[[], int]]) -> None:
    """Follow an answer for each way to cut its connections; all texts are those that are stored."""
    service = served.service
    token = service.tokens.create("ann", "test").secret
    for cut in every:
        talk = service.create_talk_session("ann", profile="wordy")
        if read is not by_javascript:
            service.add_message("ann", talk, "go")
        proxy.every = cut
        texts = read(proxy.url, token, talk)
        stored = {message.seq: message.content for message in service.get_messages("ann", talk).messages}
        assert texts == stored
        assert stored[2] == "".join(WORDS)
    assert proxy.connections > len(every), "connections were cut"


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "counts", [(1, 2, 3, 7, 20, 50), pytest.param(tuple(range(1, 51)), marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_a_stream_that_is_cut_after_every_few_events_has_the_stored_text(
    served: Served, reader: str, counts: tuple[int, ...]
) -> None:
    with failing(served.url) as proxy:
        check(served, proxy, READERS[reader], [cycle([count]).__next__ for count in counts])


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 30))])
def test_a_stream_that_is_cut_after_any_number_of_events_has_the_stored_text(
    served: Served, reader: str, seed: int
) -> None:
    chance = Random(seed)
    with failing(served.url) as proxy:
        check(served, proxy, READERS[reader], [lambda: chance.randint(1, 50)] * 4)
