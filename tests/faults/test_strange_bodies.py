"""S3, S7: bodies that would take minutes to read are refused in milliseconds, and nobody else waits meanwhile."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost.api import endpoints
from roost.api.error_responses import HttpError
from roost.api.limits import bodies
from roost.brains.chat.dialogue import ToolCall
from roost.brains.chat.tool_calls import ToolCaller
from roost.brains.gguf.messages import chosen
from roost.protocol.namespaces import methods
from roost.sync import NAMESPACES
from tests.api.serving import Served, serving
from tests.conftest import Open
from tests.faults.raw_http import answer, request, sockets

JSON = {"Content-Type": "application/json"}
MANY_FIELDS = b"{" + b",".join(b'"f%d":0' % number for number in range(1_000_000)) + b"}"
HOSTILE = {
    "many unknown fields": MANY_FIELDS,
    "many unknown fields inside": b'{"options":' + MANY_FIELDS + b"}",
    "many values in a list": b'{"agentIds":[' + b"0," * 5_000_000 + b"0]}",
    "many empty lists": b'{"agentIds":[' + b"[]," * 3_000_000 + b"0]}",
    "many texts without commas": b'{"a":' + b'""' * 5_000_000 + b"}",
    "deep": b'{"data":' + b"[" * 5_000_000,
    "deep objects": b'{"a":' * 2_000_000,
    "in UTF-16": json.dumps({f"f{n}": 0 for n in range(500_000)}).encode("utf-16"),
    "behind escaped quotes": b'{"content":"' + rb"\"" * 3_000_000 + b'",' + MANY_FIELDS[1:],
    "behind escaped backslashes": b'{"content":"' + rb"\\" * 3_000_000 + b'",' + MANY_FIELDS[1:],
}


@pytest.fixture
def served(service: Open) -> Iterator[Served]:
    with serving(service()) as running:
        yield running


def waits_of(url: str, stop: threading.Event) -> Iterator[float]:
    """Seconds that each of many looks at /healthz has waited; the first one does not depend on `stop`."""
    with httpx.Client(base_url=url, trust_env=False) as client:
        while True:
            began = time.monotonic()
            assert client.get("/healthz", timeout=60).status_code == 200
            yield time.monotonic() - began
            if stop.wait(0.01):
                return


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_body_is_refused_and_others_are_answered_meanwhile(served: Served, kind: str) -> None:
    stop, waited = threading.Event(), [0.0]
    other = threading.Thread(target=lambda: waited.extend(waits_of(served.url, stop)))
    other.start()
    try:
        with served.browser("ann", **JSON) as ann:
            answer = ann.post("/api/v1/agents/create-many", content=HOSTILE[kind], timeout=60)
    finally:
        stop.set()
        other.join()
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid")
    assert len(answer.content) < 1_000
    assert len(waited) > 1
    assert max(waited) < 15  # it took a minute


def test_errors_name_the_first_mistake_of_each_list(served: Served) -> None:
    with served.browser("ann") as ann:
        answer = ann.post("/api/v1/agents/create-many", json={"agentIds": [1] * 90_000})
    assert answer.status_code == 422
    assert answer.json()["detail"] == "agentIds.0: must be a valid string"


@pytest.mark.parametrize(
    "content", [", [{" * 100_000, '"' * 1_000_000, "\\" * 1_000_000, '\\"' * 500_000, "]}" * 200_000, "ü,🐦" * 99_999]
)
def test_a_message_may_be_full_of_punctuation(served: Served, content: str) -> None:
    talk = served.service.create_talk_session("ann", profile="echo")
    with served.browser("ann") as ann:
        answer = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": content})
    assert (answer.status_code, answer.json().get("content")) == (201, content)


def test_data_of_many_values_and_of_the_deepest_nesting_is_taken(served: Served) -> None:
    deep: Any = 0
    for _ in range(63):
        deep = [deep]
    with served.browser("ann") as ann:
        for data in ({"rows": list(range(99_000))}, {f"f{n}": n for n in range(9_999)}, {"deep": deep}):
            answer = ann.post("/api/v1/events", json={"name": "ready", "data": data})
            assert answer.status_code in (200, 201, 204), answer.text


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(st.dictionaries(st.text(), VALUES, max_size=20), st.booleans())
def test_no_json_of_a_usual_size_is_refused(value: dict[str, Any], ascii_only: bool) -> None:
    try:
        body = json.dumps(value, ensure_ascii=ascii_only).encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        body = json.dumps(value).encode()
    bodies.check(body)
    assert bodies.parsed(body) == value


@given(st.binary())
def test_any_bytes_pass_or_are_refused(body: bytes) -> None:
    refused = b"\0" in body or _depth(body) > bodies.LEVELS
    with pytest.raises(HttpError) if refused else nullcontext():
        bodies.check(body)


def _depth(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")  # at most


@pytest.mark.parametrize("arguments", ["[" * 100_000, '{"a":' * 100_000, "9" * 5_000, "", "null", "no JSON"])
def test_invented_arguments_are_an_error_for_the_model(arguments: str) -> None:
    class Asked:
        async def call_tool(self, name: str, given: object, call_id: str) -> str:
            return f"{name} {given}"

        def tool_seconds(self, call_id: str) -> None:
            return None

    async def acted() -> str:
        hands = ToolCaller(Asked(), ())  # type: ignore[arg-type]
        async for _ in hands.act([ToolCall("look", arguments, "call_1")]):
            pass
        return hands.results[0].text

    assert asyncio.run(acted()).startswith("look {}" if not arguments else "the arguments are not a JSON object")


def test_an_invented_call_of_a_local_model_is_an_error_for_it() -> None:
    for text in ("[" * 100_000, "{}", "[]", '{"tool": "look"}', '{"tool": "look", "argum'):
        assert chosen(text).arguments == text


# --- fuzzed fields ---------------------------------------------------------------------------------------

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    2**63,
    1e308,
    "",
    " ",
    "\0",
    "\ud800",
    "‮gnirts",
    "../../etc/passwd",
    "'; DROP TABLE talks; --",
    "x" * 10_000,
    "<script>alert(1)</script>",
    "\x1b[31mred",
    [],
    [[]],
    {},
    {"a": {"b": [None]}},
    "2030-01-01",
    "NaN",
]
ROUTES = [
    (method.route.verb, f"/api/v1/{re.sub(r'{[a-z_]+}', '{id}', method.path)}", list(method.takes.model_fields))
    for face, kind in NAMESPACES.items()
    for method in methods(face, kind)
] + [
    ("POST", "/api/v1/talks", ["profile", "agent", "busy", "title", "model", "temperature", "instructions"]),
    ("POST", "/api/v1/talks/{id}/messages", ["content", "key", "busy"]),
    ("POST", "/api/v1/talks/{id}/stop", ["wait"]),
    ("PATCH", "/api/v1/talks/{id}", ["title", "profile", "busy", "options"]),
    ("GET", "/api/v1/talks/{id}/messages", ["after", "before", "limit"]),
]


def fuzz(served: Served, seed: int, count: int) -> None:
    """Send requests with odd values in known and unknown fields: each is answered or refused, and none fails."""
    chosen, statuses = random.Random(seed), set()
    talk = served.service.create_talk_session("ann", profile="echo")
    with served.browser("ann") as ann:
        for _ in range(count):
            method, path, names = chosen.choice(ROUTES)
            fields = {name: chosen.choice(ODD) for name in names if chosen.random() < 0.7 and name != "timeout"}
            if chosen.random() < 0.1:
                fields["unknown"] = chosen.choice(ODD)
            where = path.format(id=chosen.choice([talk, "d", "talk_nothing", "%00", "a%2Fb", "..", "x" * 30_000]))
            is_query = method in ("GET", "DELETE")
            body = None if is_query else json.dumps(fields)
            query = {name: str(value)[:500] for name, value in fields.items()} if is_query else None
            if query is not None:
                query = {name: value.encode("utf-8", "replace").decode() for name, value in query.items()}
            answer = ann.request(method, where, content=body, params=query, headers=JSON, timeout=30)
            statuses.add(answer.status_code)
            assert answer.status_code < 500, (method, where, fields, answer.text)
            assert len(answer.content) < 100_000
        assert ann.get("/readyz").status_code == 200
    assert {200, 422, 404} <= statuses  # some were taken, and some refused
    assert served.service.health().problem is None


FAST = roost.Limits(
    drain=0.5,
    stop_patience=0.3,
    request_burst=1e9,
    requests_per_second=1e9,
    address_request_burst=1e9,
    address_requests_per_second=1e9,
)


@pytest.fixture
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """End a request without a timeout that waits for news, and finds none, soon."""
    monkeypatch.setattr(endpoints, "LONGEST_WAIT", 0.1)


@pytest.mark.usefixtures("_short_waits")
def test_odd_values_in_any_field_are_answered_or_refused(service: Open) -> None:
    with serving(service(limits=FAST), limits=FAST) as served:
        fuzz(served, seed=1, count=400)


@pytest.mark.soak
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("_short_waits")
@pytest.mark.parametrize("seed", range(2, 12))
def test_odd_values_in_any_field_for_long(service: Open, seed: int) -> None:
    with serving(service(limits=FAST), limits=FAST) as served:
        fuzz(served, seed, count=5_000)


def test_a_body_with_two_lengths_is_refused_and_what_follows_is_not_a_request(served: Served) -> None:
    lengths = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\nContent-Type: application/json"
    hidden = request(served, "GET", "/api/v1/me", "ann")
    with sockets(served, 1, request(served, "POST", "/api/v1/talks", "ann", lengths, b"0\r\n\r\n" + hidden)) as [one]:
        got = answer(one)
        while piece := one.recv(65_536):  # until it is closed
            got += piece
    assert got.startswith(b"HTTP/1.1 400 ")
    assert got.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("length", ["9" * 15, "9" * 16, "9" * 20])
def test_a_length_beyond_all_limits_is_refused_before_the_body(served: Served, length: str) -> None:
    with sockets(served, 1, request(served, "POST", "/api/v1/talks", "ann", f"Content-Length: {length}")) as [one]:
        assert answer(one).startswith(b"HTTP/1.1 413 ")
