"""A subscription whose connection is cut at any byte, and whose server is restarted, is assembled as it is stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import WebSocketException
from websockets.sync.client import connect

from tests.api.rpc.connection import Client
from tests.api.rpc.test_subscriptions import Text
from tests.client.proxy import failing
from tests.client.test_reconnect import WORDS, started

LOST = (OSError, EOFError, WebSocketException)


@contextmanager
def opened(url: str, token: str) -> Iterator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    with connect(
        url.replace("http", "ws") + "/rpc", additional_headers=headers, proxy=None, compression=None
    ) as socket:
        yield Client(socket)


def read(client: Client, talk: str, text: Text, until: str) -> None:
    """Read the text from its cursor on, until the newest message ends with these words."""
    client.call("subscribe", topic="talk", talkSessionId=talk, after=text.cursor)
    while not text.messages or not text.messages[max(text.messages)].endswith(until):
        text.add(client.event())


@settings(max_examples=3)
@given(cuts=st.lists(st.integers(400, 8_000), min_size=3, max_size=12))
def test_a_subscription_that_is_cut_anywhere_has_the_stored_text(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    folder, text = tmp_path_factory.mktemp("cut"), Text()
    with failing("http://localhost:1") as proxy, ExitStack() as first, ExitStack() as second:
        served = first.enter_context(started(folder, proxy))
        token = served.service.tokens.create("ann", "test").secret
        talk = served.service.create_talk_session("ann", profile="counting")
        served.service.add_message("ann", talk, folder.name)
        for until in (WORDS[60], WORDS[-1]):
            proxy.cuts = list(cuts)
            is_whole = False
            while not is_whole:
                try:
                    with opened(proxy.url, token) as client:
                        read(client, talk, text, until)
                        is_whole = True
                except LOST:
                    continue  # the next connection is cut later, or not at all
            if until == WORDS[60]:
                first.close()
                served = second.enter_context(started(folder, proxy))
        stored = served.service.get_messages("ann", talk).messages
    assert text.messages == {message.seq: message.content for message in stored}
    assert stored[-1].content == "".join(WORDS)
