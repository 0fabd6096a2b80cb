"""The WebSocket of the page: whole states of messages, continued by a cursor, for its own user only."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect
from websockets.sync.connection import Connection

import roost
from roost.api.routes import live
from roost.core.talks.messages import Page
from tests.api.conftest import BRAINS
from tests.api.serving import Served, limited, serving
from tests.conftest import Open, eventually


def opened(served: Served, user: str | None = "ann", **headers: str) -> Connection:
    cookie = {"Cookie": f"{served.identity.cookie_name}={served.identity.cookie(user)}"} if user else {}
    sent = {"Origin": served.url, **cookie, **headers}
    return connect(served.url.replace("http", "ws") + live.PATH, additional_headers=sent, proxy=None)


class Reader:
    """A tab: what it was sent of the open talk."""

    def __init__(self, socket: Connection, talk: str, after: str | None = None) -> None:
        self.socket = socket
        self.talk = talk
        self.cursor = after
        self.texts: dict[int, list[str]] = {}
        self.last: dict[int, dict[str, Any]] = {}
        self.running: bool | None = None
        socket.send(json.dumps({"open": talk, "after": after}))

    def frames(self) -> Iterator[dict[str, Any]]:
        while True:
            frame = json.loads(self.socket.recv(timeout=15))
            if frame.get("talk") == self.talk:
                yield frame

    def read(self, until: Callable[[Reader], object]) -> Reader:
        for frame in self.frames():
            for message in frame.get("messages", []):
                blocks = self.texts.setdefault(message["seq"], [])
                assert message["text"]["keep"] <= len(blocks)
                blocks[message["text"]["keep"] :] = message["text"]["add"]
                self.last[message["seq"]] = message
            self.cursor = frame.get("cursor", self.cursor)
            self.running = frame.get("running", self.running)
            if until(self):
                return self
        raise AssertionError

    @property
    def is_done(self) -> bool:
        return self.running is False and bool(self.last)


def said(served: Served, text: str, profile: str = "parrot", user: str = "ann") -> str:
    talk = served.service.create_talk_session(user, profile=profile)
    served.service.add_message(user, talk, text)
    return talk


def test_an_answer_arrives_in_blocks_and_at_its_end_with_its_source(served: Served) -> None:
    talk = said(served, "go", "slow")
    with opened(served) as socket:
        reader = Reader(socket, talk).read(lambda reader: reader.is_done)
    source = "".join(f"wört{number} 🐦 " for number in range(40))
    assert [one["sender"] for one in reader.last.values()] == ["user", "agent"]
    assert (reader.last[1]["source"], reader.last[2]["source"]) == ("go", source)
    assert reader.texts[2] == [f'<p dir="auto">{source.strip()}</p>\n']


def test_a_reader_that_reconnects_in_the_middle_misses_nothing(service: Open) -> None:
    read = threading.Event()

    async def halting(turn: roost.Turn) -> AsyncIterator[str]:
        for number in range(40):
            yield f"wört{number} 🐦 "
            if number == 5:
                await asyncio.to_thread(read.wait, 30)

    with serving(service({"halting": halting})) as served:
        talk = said(served, "go", "halting")
        with opened(served) as socket:
            first = Reader(socket, talk).read(lambda reader: "wört5" in "".join(reader.texts.get(2, [])))
        read.set()
        with opened(served) as socket:
            second = Reader(socket, talk, first.cursor).read(lambda reader: reader.is_done)
    assert list(second.last) == [2]
    assert second.last[2]["source"] == "".join(f"wört{number} 🐦 " for number in range(40))


def test_a_socket_switches_to_another_talk(served: Served) -> None:
    one, two = said(served, "one"), said(served, "two")
    with opened(served) as socket:
        Reader(socket, one).read(lambda reader: reader.is_done)
        second = Reader(socket, two).read(lambda reader: reader.is_done)
    assert [message["source"] for message in second.last.values()] == ["two", "two "]


def test_older_messages_come_on_demand(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot", busy="queue")
    for number in range(40):
        served.service.add_message("ann", talk, f"{number}", key=f"{number}")
        for _ in served.service.stream_messages("ann", talk):
            pass
    with opened(served) as socket:
        reader = Reader(socket, talk)
        first = next(reader.frames())
        assert ([one["seq"] for one in first["messages"]], first["more"]) == (list(range(31, 81)), True)
        socket.send(json.dumps({"older": 31}))
        older, end = next(reader.frames()), next(reader.frames())
        assert [one["seq"] for one in older["messages"]] == list(range(1, 31))
        assert (end["older"], end["more"]) == (True, False)


def test_the_talk_of_another_user_is_gone(served: Served) -> None:
    talk = said(served, "secret")
    with opened(served, "bob") as socket:
        assert next(Reader(socket, talk).frames()) == {"talk": talk, "gone": True}


def test_a_reader_whose_store_was_replaced_starts_again(served: Served) -> None:
    talk = said(served, "hello")
    with opened(served) as socket:
        Reader(socket, talk).read(lambda reader: reader.is_done)
        reader = Reader(socket, talk, f"{talk[-4:]}.999999.0.0")
        assert next(reader.frames()) == {"talk": talk, "reset": True}
        reader.read(lambda reader: reader.is_done)
        assert len(reader.last) == 2


@pytest.mark.parametrize(("user", "headers"), [(None, {}), ("ann", {"Origin": "http://elsewhere.example"})])
def test_without_a_cookie_or_from_another_site_the_socket_is_refused(
    served: Served, user: str | None, headers: dict[str, str]
) -> None:
    with pytest.raises(InvalidStatus):
        opened(served, user, **headers)


@pytest.mark.parametrize("sent", ["x" * (live.MOST_ASKED + 1), "no json", "[1]", b"bytes", "[" * 4_000])
def test_a_socket_that_sends_something_else_is_closed(served: Served, sent: str | bytes) -> None:
    with opened(served) as socket:
        socket.send(sent)
        with pytest.raises(ConnectionClosed):
            while True:
                socket.recv(timeout=15)


@limited(open_requests_per_user=2)
def test_the_number_of_sockets_of_a_user_is_limited(served: Served) -> None:
    with opened(served), opened(served):
        with pytest.raises(InvalidStatus):
            opened(served)
        opened(served, "bob").close()

    def reopened() -> bool:
        try:
            opened(served).close()
        except InvalidStatus:
            return False
        return True

    eventually(reopened)


async def broken(turn: roost.Turn) -> AsyncIterator[str]:
    yield "half"
    raise ValueError("inside")


@pytest.mark.parametrize("user", ["local", "ann"])
def test_a_traceback_is_sent_to_the_operator_alone(service: Open, user: str) -> None:
    with serving(service({**BRAINS, "broken": broken})) as served:
        talk = said(served, "go", "broken", user)
        with opened(served, user) as socket:
            reader = Reader(socket, talk).read(lambda reader: reader.is_done)
    failed = reader.last[max(reader.last)]
    assert failed["status"] == "failed"
    assert "inside" not in failed["error"]
    assert ("ValueError: inside" in failed.get("details", "")) == (user == "local")


def test_a_digest_reports_changes_of_what_the_page_shows_around_the_talk(served: Served) -> None:
    with opened(served) as socket:
        first = json.loads(socket.recv(timeout=15))
        talk = said(served, "hello")
        second = json.loads(socket.recv(timeout=15))
        assert first["around"] != second["around"]
        served.service.rename("ann", talk, "Another title")
        found = second
        while found["around"] == second["around"]:
            found = json.loads(socket.recv(timeout=15))


def test_sockets_end_with_the_service(service: Open) -> None:
    with serving(service(BRAINS)) as served:
        talk = said(served, "hello")
        socket = opened(served)
        Reader(socket, talk).read(lambda reader: reader.is_done)
        served.service.close()
        with pytest.raises(ConnectionClosed):
            while True:
                socket.recv(timeout=15)
        socket.close()


def test_approvals_come_with_their_answers_and_are_news_when_they_are_decided(served: Served) -> None:
    def cards(frames: Iterator[dict[str, Any]]) -> dict[str, Any]:
        return next(frame for frame in frames if frame.get("approvals"))

    talk = said(served, "it", "careful")
    [asked] = eventually(lambda: served.service.approvals.list("ann"))
    with opened(served) as socket, opened(served, "bob") as other:
        frames = Reader(socket, talk).frames()
        [card] = cards(frames)["approvals"]
        assert (card["id"], card["seq"], list(card["actions"])) == (
            asked.approval_id,
            2,
            ["approve", "decline", "always"],
        )
        served.service.approvals.approve("ann", asked.approval_id)
        socket.send(json.dumps({"approvals": True}))
        [card] = cards(frames)["approvals"]
        assert (card["verdict"], card["actions"]) == ("Approved by you", {})
        while card["seq"] is None:
            [card] = cards(frames)["approvals"]
        assert card["seq"] == 2
        assert "gone" in next(Reader(other, talk).frames()), "others see nothing of it"
    cursor = served.service.get_messages("ann", talk).cursor
    with opened(served) as socket:
        again = cards(Reader(socket, talk, cursor).frames())
        assert again["whole_approvals"]
        assert [one["id"] for one in again["approvals"]] == [asked.approval_id]


def test_the_approvals_of_an_answer_that_began_and_ended_between_two_pages_come_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    every_page = live.LiveSockets.pages

    async def of_a_slow_reader(*args: Any) -> AsyncIterator[Page]:
        async for page in every_page(*args):
            if not page.running:
                yield page

    monkeypatch.setattr(live.LiveSockets, "pages", of_a_slow_reader)
    monkeypatch.setattr(live, "LOOK_AROUND", 60.0)
    talk = said(served, "it", "careful")
    [asked] = eventually(lambda: served.service.approvals.list("ann"))
    served.service.approvals.allow_always("ann", asked.approval_id)
    eventually(lambda: not served.service.get_messages("ann", talk).running)
    with opened(served) as socket:
        frames = Reader(socket, talk).frames()
        [first] = next(frame for frame in frames if frame.get("approvals"))["approvals"]
        served.service.add_message("ann", talk, "it")
        [second] = next(frame for frame in frames if frame.get("approvals"))["approvals"]
    assert (first["seq"], second["seq"]) == (2, 4)


def test_the_approvals_of_a_talk_come_after_its_first_messages(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    every_page, look, calls = live.LiveSockets.pages, live._Around.look, count(1)
    is_open, has_looked = asyncio.Event(), asyncio.Event()

    async def in_between(around: Any) -> tuple[str, str]:
        await is_open.wait()
        if next(calls) == 2:  # what the first look has found is sent
            has_looked.set()
        return await look(around)

    async def late(*args: Any) -> AsyncIterator[Page]:
        is_open.set()
        await has_looked.wait()
        async for page in every_page(*args):
            yield page

    monkeypatch.setattr(live._Around, "look", in_between)
    monkeypatch.setattr(live.LiveSockets, "pages", late)
    monkeypatch.setattr(live, "LOOK_AROUND", 0.005)
    talk = said(served, "it", "careful")
    eventually(lambda: served.service.approvals.list("ann"))
    with opened(served) as socket:
        frames = Reader(socket, talk).frames()
        assert next(frames)["messages"]
        assert next(frame for frame in frames if frame.get("approvals"))
