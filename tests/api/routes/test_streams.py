"""Server-sent events: everything once, in order, from wherever one resumes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import httpx
import pytest

import roost
from roost.api.limits.concurrency import ConcurrencyLimit
from roost.api.routes import streams
from roost.api.subscriptions import Subscriptions
from roost.protocol.values import shown
from tests.api.serving import Served, limited, serving
from tests.conftest import Open, eventually


def lines(response: httpx.Response) -> Iterator[str]:
    """As the standard has them: what else Unicode takes for the end of a line is text."""
    rest = b""
    for piece in response.iter_raw():
        *whole, rest = (rest + piece).split(b"\n")
        yield from (line.decode() for line in whole)


def events(response: httpx.Response) -> Iterator[tuple[str, str | None, Any]]:
    """(event, id, data) of each event as it comes."""
    fields: dict[str, str] = {}
    for line in lines(response):
        name, _, value = line.partition(": ")
        if line and name:
            fields[name] = value
        elif not line and fields:
            yield fields["event"], fields.get("id"), json.loads(fields["data"])
            fields = {}


def grown(texts: dict[int, str], change: Any) -> None:
    seq = change["message"]["seq"]
    before = "" if change["reset"] else texts.get(seq, "")
    assert change["reset"] or len(before) == change["offset"]
    texts[seq] = before + change["text"]


def read(client: httpx.Client, talk: str, texts: dict[int, str], heard: Callable[[], None]) -> list[str | None]:
    """Read a stream to its end; the ids that came."""
    with client.stream("GET", f"/api/v1/talks/{talk}/stream") as response:
        assert response.status_code == 200
        ids: list[str | None] = []
        for kind, number, data in events(response):
            if kind == "end":
                return ids
            grown(texts, data)
            ids.append(number)
            heard()
    pytest.fail("the stream broke off")


def test_a_stream_gives_the_answer_to_the_byte_and_ends_with_it(service: Open) -> None:
    heard = threading.Semaphore()

    async def paced(turn: roost.Turn) -> AsyncIterator[str]:
        """Continue when the reader has received the last piece."""
        for number in range(5):
            yield f"wört{number} 🐦 "
            while not heard.acquire(blocking=False):  # noqa: ASYNC110 — it is released on another thread
                await asyncio.sleep(0.002)

    with serving(service({"paced": paced})) as served, served.browser("ann") as ann:
        talk = served.service.create_talk_session("ann", profile="paced")
        served.service.add_message("ann", talk, "go\n\nnow: \u2028 data: x")
        texts: dict[int, str] = {}
        ids = read(ann, talk, texts, heard=heard.release)
        assert len(ids) >= 5, "it comes in pieces"
        assert texts == {m.seq: m.content for m in served.service.get_messages("ann", talk).messages}


def test_a_stream_can_be_resumed_after_every_event_to_the_byte(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="slow", busy="queue")
    for text in ("one", "two", "three"):
        served.service.add_message("ann", talk, text)
    with served.browser("ann") as ann:
        texts: dict[int, str] = {}
        cursor: str | None = None
        for _ in range(1_000):
            headers = {"Last-Event-ID": cursor} if cursor else {}
            with ann.stream("GET", f"/api/v1/talks/{talk}/stream", headers=headers) as response:
                kind, cursor, data = next(events(response))
            if kind == "end":
                break
            grown(texts, data)
    assert texts == {m.seq: m.content for m in served.service.get_messages("ann", talk).messages}


def test_a_stream_that_follows_shows_what_is_said_later(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with served.browser("ann") as ann, ann.stream("GET", f"/api/v1/talks/{talk}/stream?follow=true") as response:
        stream = events(response)
        served.service.add_message("ann", talk, "first")
        assert next(stream)[2]["text"] == "first"
        for _, _, change in stream:
            if change["message"]["status"] == "complete":
                break
        served.service.add_message("ann", talk, "second")
        assert next(stream)[2]["text"] == "second"


def test_a_talk_that_is_deleted_ends_its_streams_with_the_error(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="endless")
    with served.browser("ann") as ann, ann.stream("GET", f"/api/v1/talks/{talk}/stream?follow=true") as response:
        served.service.add_message("ann", talk, "go")
        stream = events(response)
        next(stream)
        served.service.delete("ann", talk)
        kind, _, data = list(stream)[-1]
    assert (kind, data["code"]) == ("error", "not_found")


def test_a_wrong_cursor_is_refused_before_the_stream_begins(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    with served.browser("ann") as ann:
        refused = ann.get(f"/api/v1/talks/{talk}/stream", headers={"Last-Event-ID": "nonsense"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid")


@limited(open_requests_per_user=1)
def test_streams_are_counted_and_let_go(served: Served) -> None:
    talk = served.service.create_talk_session("ann", profile="parrot")
    path = f"/api/v1/talks/{talk}/stream?follow=true"
    served.service.add_message("ann", talk, "hello")
    with served.browser("ann") as ann, served.browser("bob") as bob:
        with ann.stream("GET", path) as first:
            stream = events(first)
            next(stream)
            refused = ann.get(path)
            assert (refused.status_code, refused.json()["code"]) == (429, "limit_reached")
            assert bob.get(path).status_code == 404
        eventually(lambda: is_open(ann, path))


class Gated:
    """A service whose store takes its time, and then answers or fails."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked = 0
        self.gate = asyncio.Event()
        self.error = error

    async def get_messages(self, *_: object, **__: object) -> None:
        self.asked += 1
        await self.gate.wait()
        if self.error:
            raise self.error


def opened_streams(service: Gated) -> streams.Streams:
    gated = cast(roost.AsyncAgentService, service)
    return streams.Streams(gated, Subscriptions(gated), roost.Limits(open_requests_per_user=3))


async def opened_at_once(service: Gated, opened: streams.Streams, count: int) -> list[object]:
    asked = [asyncio.create_task(opened.open("ann", "talk_1", None, follow=True)) for _ in range(count)]
    await asyncio.wait(asked, timeout=0)  # lets each come as far as it comes
    service.gate.set()
    return list(await asyncio.gather(*asked, return_exceptions=True))


def test_many_that_come_at_once_do_not_pass_the_bound() -> None:
    service = Gated()
    opened = opened_streams(service)
    results = asyncio.run(opened_at_once(service, opened, 5))
    assert [isinstance(result, roost.LimitReached) for result in results] == [False] * 3 + [True] * 2
    assert service.asked == 3


def test_a_stream_that_is_refused_is_not_counted() -> None:
    service = Gated(roost.NotFound("no such talk"))
    opened = opened_streams(service)
    for _ in range(2):
        results = asyncio.run(opened_at_once(service, opened, 3))
        assert [type(result) for result in results] == [roost.NotFound] * 3


def is_open(client: httpx.Client, path: str) -> bool:
    with client.stream("GET", path) as response:
        return response.status_code == 200


def test_one_address_does_not_take_all_places() -> None:
    taken = ConcurrencyLimit("streams", roost.Limits(open_requests_per_address=3))
    for number in range(3):
        taken.take(f"user {number}", "10.0.0.1")
    with pytest.raises(roost.LimitReached, match="too many open streams"):
        taken.take("user 4", "10.0.0.1")
    taken.take("user 4", "10.0.0.2")
    taken.leave("user 0", "10.0.0.1")
    taken.take("user 5", "10.0.0.1")


# --- subscriptions ---------------------------------------------------------------------------------------


def test_mail_is_streamed_once_and_in_order_over_many_connections(served: Served) -> None:
    send = served.service.mail.send
    subjects, last = list[str](), ""
    with served.browser("ann") as ann:
        for number in range(5):
            headers = {"Last-Event-ID": last} if last else {}
            with ann.stream("GET", "/api/v1/mail/stream", headers=headers) as response:
                send("ann", "user:ann", f"open {number}", "x")
                for kind, cursor, mail in events(response):
                    subjects.append(mail["subject"])
                    assert (kind, cursor) == ("mail", mail["cursor"])
                    last = str(cursor)
                    if mail["subject"] == f"open {number}":
                        break
            send("ann", "user:ann", f"closed {number}", "x")
            send("bob", "user:bob", "of somebody else", "x")
    expected = [f"{state} {number}" for number in range(5) for state in ("open", "closed")]
    assert subjects == expected[:-1]


@pytest.mark.parametrize("path", ["monitor/stream", "agents/d/stream"])
def test_facts_are_streamed_once_and_in_order_over_many_connections(served: Served, path: str) -> None:
    service = served.service
    for name in ("d", "e"):
        service.agents.create("ann", name)
    start = service.monitor.facts("ann").cursor
    found, last = list[Any](), start
    with served.browser("ann") as ann:
        for number in range(5):
            for name in ("d", "e"):
                (service.agents.resume if number % 2 else service.agents.pause)("ann", name)
            with ann.stream("GET", f"/api/v1/{path}", headers={"Last-Event-ID": last}) as response:
                kind, cursor, fact = next(events(response))
                assert kind == path.partition("/")[0]
                found.append(fact)
                last = str(cursor)
    stored = [shown(fact) for fact in service.monitor.facts("ann", after=start).facts]
    wanted = [fact for fact in stored if path.startswith("monitor") or fact["about"] == "ann/d"]
    assert found == wanted[:5]


def test_a_meeting_is_streamed_until_it_ends(served: Served) -> None:
    service = served.service
    meeting = service.meetings.call("ann", "plan", open=True)
    with served.browser("ann") as ann, served.browser("bob") as bob:
        with ann.stream("GET", f"/api/v1/meetings/{meeting}/stream") as response:
            seen = events(response)
            assert next(seen)[2]["topic"] == "plan"
            service.meetings.end("ann", meeting)
            kinds = [kind for kind, *_ in seen]
        assert (kinds[-1], set(kinds[:-1])) == ("end", {"meeting"})
        never = meeting[:-1] + ("0" if meeting[-1] != "0" else "1")
        answers = [bob.get(f"/api/v1/meetings/{one}/stream") for one in (meeting, never)]
        assert [answer.status_code for answer in answers] == [404, 404]
        assert answers[0].text.replace(meeting, "") == answers[1].text.replace(never, "")
        assert bob.get("/api/v1/agents/never/stream").status_code == 404
        assert bob.get("/api/v1/mail/stream", headers={"Last-Event-ID": "nonsense"}).status_code == 422
