"""P6: the client waits for a server that restarts, and resumes its streams without a gap or a duplicate."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import roost
from roost.client import connect
from roost.client import http as client_http
from roost.client import namespaces as client_namespaces
from tests.api.serving import Served, serving
from tests.client import looped
from tests.client.conftest import Dial
from tests.client.proxy import Proxy, failing
from tests.client.test_http import HEAD, answering
from tests.conftest import eventually

AWAY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
BUSY = b'{"type":"about:blank","title":"x","status":503,"detail":"the store is away","code":"unavailable"}'
OWN = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\n\r\n" % len(BUSY) + BUSY
STOPPED = b"HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nError"


WORDS = [f"wört{number} 🐦 " for number in range(120)]
RUNS: Counter[str] = Counter()


async def counting(turn: roost.Turn) -> AsyncIterator[str]:
    """Stop in the middle of the first run, until the server ends."""
    RUNS[turn.text] += 1
    for number, word in enumerate(WORDS):
        yield word
        await asyncio.sleep(3600 if RUNS[turn.text] == 1 and number == 60 else 0.001)


async def parrot(turn: roost.Turn) -> AsyncIterator[str]:
    yield turn.text


HASTY = roost.Limits(drain=0.05, stop_patience=1.0)
BRAINS: dict[str, roost.Brain] = {"counting": counting, "parrot": parrot}


@contextmanager
def started(folder: Path, proxy: Proxy) -> Iterator[Served]:
    """A server on the store of a folder, which the proxy leads to."""
    with (
        roost.open(f"sqlite:///{folder}/r.db", brains=BRAINS, limits=HASTY) as service,
        serving(service) as served,
    ):
        proxy.server = served.url
        yield served
    proxy.server = None


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with failing("http://localhost:1") as found:
        yield found


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_namespaces, "AFTER_NOTHING", 0.01)


# --- requests --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("away", [AWAY, OWN, STOPPED], ids=["of a proxy", "without a store", "that closes"])
def test_a_request_is_sent_again_while_the_server_restarts(dial: Dial, away: bytes) -> None:
    found = HEAD + b'Content-Length: 43\r\n\r\n{"userId":"ann","scopes":["*"],"role":null}'
    with answering(away, away, found) as (url, asked), dial(url, "token") as remote:
        assert remote.me() == roost.CurrentUser("ann", ("*",))
    assert len(asked) == 3


def test_a_request_that_may_have_been_done_is_not_sent_again(dial: Dial) -> None:
    with answering(AWAY) as (url, asked), dial(url, "token") as remote, pytest.raises(roost.Unavailable, match="503"):
        remote.events.publish("ann", "once")
    assert len(asked) == 1


def test_a_request_waits_for_a_server_that_starts(tmp_path: Path, proxy: Proxy, dial: Dial) -> None:
    with started(tmp_path, proxy) as served:
        token = served.service.tokens.create("ann", "test").secret
    found: list[roost.CurrentUser] = []

    def ask() -> None:
        with dial(proxy.url, token) as remote:
            found.append(remote.me())

    asking = threading.Thread(target=ask)
    asking.start()
    eventually(lambda: proxy.connections > 3)
    with started(tmp_path, proxy):
        asking.join(20)
    assert found == [roost.CurrentUser("ann", ("*",))]


# --- streams ---------------------------------------------------------------------------------------------


@settings(max_examples=3)
@given(cuts=st.lists(st.integers(1, 50), min_size=1, max_size=6), restart=st.integers(1, 60))
@pytest.mark.parametrize("form", ["plain", "async"])
def test_a_text_that_is_cut_anywhere_is_assembled_as_it_is_stored(
    tmp_path_factory: pytest.TempPathFactory, form: str, cuts: list[int], restart: int
) -> None:
    folder, dial = tmp_path_factory.mktemp("cut"), connect if form == "plain" else looped.connect
    texts: dict[int, str] = {}
    restarted = False
    with failing("http://localhost:1") as proxy, ExitStack() as first, ExitStack() as second:
        served = first.enter_context(started(folder, proxy))
        token = served.service.tokens.create("ann", "test").secret
        proxy.every = cycle(cuts).__next__
        with dial(proxy.url, token) as remote:
            talk = served.service.create_talk_session("ann", profile="counting")
            served.service.add_message("ann", talk, folder.name)
            for change in remote.stream_messages("ann", talk):
                seq = change.message.seq
                texts[seq] = change.text if change.reset else texts.get(seq, "") + change.text
                assert texts[seq] == change.message.content
                if not restarted and len(texts.get(2, "")) >= len("".join(WORDS[:restart])):
                    restarted = True
                    first.close()
                    served = second.enter_context(started(folder, proxy))
        stored = served.service.get_messages("ann", talk).messages
    assert texts == {message.seq: message.content for message in stored}
    assert [message.status for message in stored] == ["complete", "interrupted", "complete"]
    assert stored[-1].content == "".join(WORDS)


def test_streams_of_all_kinds_resume_after_a_restart(tmp_path: Path, proxy: Proxy, dial: Dial) -> None:
    with ExitStack() as first, ExitStack() as second:
        service = first.enter_context(started(tmp_path, proxy)).service
        token = service.tokens.create("ann", "test").secret
        service.agents.create("ann", "d", start=False)
        meeting = service.meetings.call("ann", "News", optional=["agent:d"])
        with dial(proxy.url, token) as remote:
            mail = remote.mail.follow("ann", after=service.mail.arrivals("ann", after="0").cursor)
            facts = remote.monitor.follow("ann", after=service.monitor.facts("ann", limit=1).cursor)
            views = remote.meetings.watch("ann", meeting)
            service.mail.send("ann", "user:ann", "one", "before")
            assert (next(mail).subject, next(facts).name) == ("one", "MailSent")
            assert next(views).words == ()
            first.close()
            service = second.enter_context(started(tmp_path, proxy)).service
            service.mail.send("ann", "user:ann", "two", "after")
            service.meetings.say("ann", meeting, "hello")
            assert (next(mail).subject, next(facts).name) == ("two", "FactsMissed")
            assert [said.text for said in next(views).words] == ["hello"]


def test_streams_do_not_end_with_a_server_that_closes(
    served: Served, dial: Dial, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, asked = served.service, Counter[str]()
    ask = client_http.HttpClient.ask

    async def counted(self: Any, method: str, path: str, *args: Any, **options: Any) -> Any:
        asked[path] += 1
        return await ask(self, method, path, *args, **options)

    monkeypatch.setattr(client_http.HttpClient, "ask", counted)
    cursors = service.mail.arrivals("ann", after="0").cursor, service.monitor.facts("ann", limit=1).cursor

    def first(kind: str) -> str:
        with dial(served.url, served.identity.token) as remote:
            if kind == "mail":
                return next(remote.mail.follow("ann", after=cursors[0])).subject
            return next(remote.monitor.follow("ann", after=cursors[1])).name

    service.roost.dispatcher.closing = service.roost.context.facts._closed = True
    with ThreadPoolExecutor(2) as pool:
        found = [pool.submit(first, kind) for kind in ("mail", "monitor")]
        eventually(lambda: asked["/mail/wait"] > 1 and asked["/monitor/wait"] > 1)  # answered without news
        service.roost.dispatcher.closing = service.roost.context.facts._closed = False
        service.mail.send("ann", "user:ann", "news", "…")
        assert [one.result(30) for one in found] == ["news", "MailSent"]


def test_a_talk_is_not_over_because_the_service_closes(tmp_path: Path, proxy: Proxy, dial: Dial) -> None:
    with started(tmp_path, proxy) as served:
        token = served.service.tokens.create("ann", "test").secret
        talk = served.service.create_talk_session("ann", profile="counting")
        served.service.add_message("ann", talk, tmp_path.name)
        with dial(proxy.url, token, patience=0.1) as remote:
            stream = remote.stream_messages("ann", talk)
            assert next(stream).message.seq == 1
            served.service.close()
            with pytest.raises(roost.Unavailable):
                list(stream)


def test_a_stream_that_waits_ends_with_an_error_when_the_server_stays_away(
    tmp_path: Path, proxy: Proxy, dial: Dial
) -> None:
    with ExitStack() as server:
        service = server.enter_context(started(tmp_path, proxy)).service
        token = service.tokens.create("ann", "test").secret
        talk = service.create_talk_session("ann", profile="parrot")
        service.add_message("ann", talk, "hello")
        with dial(proxy.url, token, patience=0.2) as remote:
            stream = remote.stream_messages("ann", talk, follow=True)
            assert next(stream).message.content == "hello"
            server.close()
            with pytest.raises(roost.Unavailable, match="cannot reach the server"):
                list(stream)
