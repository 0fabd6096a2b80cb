"""S3: connections that ask nothing, ask slowly or are too many cost others nothing."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import roost
from roost.api.limits import connections
from tests.api.serving import Served, serving
from tests.conftest import ENVIRONMENT, QUICK, Open, eventually
from tests.faults.raw_http import answer, is_closed, request, sockets

EAGER: dict[str, Any] = {"drain": 0.5, "stop_patience": 0.3, "request_timeout": 1.0, "send_timeout": 2.0}
TALKS = "/api/v1/talks"


@pytest.fixture(autouse=True)
def _sweep_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "SWEEP", 0.05)


def server(service: Open, **limits: Any) -> Any:
    chosen = roost.Limits(**(EAGER | limits))
    return serving(service(limits=chosen), limits=chosen)


def is_answered(served: Served) -> bool:
    with served.browser("bob") as bob:
        return bob.get(TALKS).status_code == 200


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_connections_that_do_not_finish_their_head_are_dropped(service: Open, sent: bytes) -> None:
    with server(service) as served, sockets(served, 30, sent) as opened:
        eventually(lambda: len(served.connections) == 30 or served.connections.aborted)
        eventually(lambda: all(is_closed(one) for one in opened))
        eventually(lambda: len(served.connections) == 0)
        assert served.connections.aborted == 30
        assert is_answered(served)


def test_a_kept_connection_that_begins_another_request_and_stops_is_dropped(service: Open) -> None:
    with server(service) as served:
        whole = request(served, "GET", TALKS, "ann")
        with sockets(served, 1, whole + b"GET /api") as (one,):
            assert answer(one).startswith(b"HTTP/1.1 200")
            eventually(lambda: is_closed(one))
            assert served.connections.aborted == 1


def test_a_body_that_stops_is_dropped_and_nothing_is_logged_as_a_failure(
    service: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with server(service) as served:
        half = request(
            served, "POST", TALKS, "ann", "Content-Type: application/json\r\nContent-Length: 20000", b'{"title": "'
        )
        with sockets(served, 10, half) as opened:
            eventually(lambda: all(is_closed(one) for one in opened))
        assert served.connections.aborted == 10
        assert served.service.list_sessions("ann") == []
    assert [r.message for r in caplog.records if r.levelname == "ERROR"] == []


def test_when_all_places_are_taken_the_oldest_that_waits_makes_room(service: Open) -> None:
    with server(service, connections=20, request_timeout=60) as served, sockets(served, 60, b"GET") as opened:
        assert is_answered(served)
        eventually(lambda: served.connections.aborted >= 40)
        assert len(served.connections) <= 20
        assert is_closed(opened[0])
        assert not is_closed(opened[-1])


def test_when_all_places_are_used_a_further_connection_is_refused(service: Open) -> None:
    with server(service, connections_per_address=8, request_timeout=60) as served:
        talk = served.service.create_talk_session("ann", profile="echo")
        stream = request(served, "GET", f"{TALKS}/{talk}/stream?follow=true", "ann")
        with sockets(served, 8, stream) as streams:
            assert all(answer(one).startswith(b"HTTP/1.1 200") for one in streams)
            with sockets(served, 1, stream) as (late,):
                assert answer(late).startswith(b"HTTP/1.1 503")
            assert served.connections.refused == 1
            assert not any(is_closed(one) for one in streams)
        eventually(lambda: len(served.connections) == 0)
        assert is_answered(served)


def test_a_stranger_is_refused_before_the_body_is_read(service: Open) -> None:
    with server(service, request_timeout=60) as served:
        half = request(
            served, "POST", TALKS, None, "Content-Type: application/json\r\nContent-Length: 20000000", b"{" * 1_000
        )
        with sockets(served, 5, half) as opened:
            assert [answer(one)[:12] for one in opened] == [b"HTTP/1.1 401"] * 5


@pytest.fixture
def halves(service: Open) -> Iterator[tuple[Served, bytes]]:
    limits = roost.Limits(
        **(EAGER | {"request_timeout": 60, "message_bytes": 200_000, "attachment_bytes": 200_000, "bodies_mib": 4.0})
    )
    with serving(service(limits=limits), limits=limits) as served:
        length = 1_000_000
        head = f"Content-Type: application/json\r\nContent-Length: {length + 2}"
        yield served, request(served, "POST", TALKS, "ann", head, b'{"title":"' + b"x" * (length - 10))


def test_bodies_that_are_almost_sent_hold_a_bounded_memory_and_give_it_back(halves: tuple[Served, bytes]) -> None:
    served, half = halves
    with sockets(served, 20, half) as opened:
        refused = [one for one in opened if _is_refused(one)]
        assert len(refused) >= 10
        assert is_answered(served)
        with served.browser("ann") as ann:  # a small body of the same user
            assert ann.post(TALKS, json={"profile": "echo"}).status_code == 201
    eventually(lambda: len(served.connections) == 0)
    with sockets(served, 1, half) as (one,):
        one.sendall(b'"}')
        assert answer(one).startswith(b"HTTP/1.1 422")  # read whole: the title is too long


def _is_refused(one: Any) -> bool:
    one.settimeout(0.5)
    try:
        return bool(one.recv(12) == b"HTTP/1.1 503")
    except TimeoutError:
        return False
    except ConnectionError:
        return True


# --- who is believed -----------------------------------------------------------------------------------


def statuses(served: Served, count: int) -> list[int]:
    found = []
    for number in range(count):
        with served.browser(f"visitor {number}", **{"X-Forwarded-For": f"10.0.0.{number}"}) as one:
            found.append(one.get("/api/v1/profiles").status_code)
    return found


def test_an_address_that_a_stranger_names_does_not_evade_the_rate(service: Open) -> None:
    limits = {"address_requests_per_second": 0.001, "address_request_burst": 3}
    with serving(service(), limits=limits) as served:
        assert statuses(served, 6) == [200] * 3 + [429] * 3


def test_an_address_that_a_trusted_proxy_names_has_its_own_rate(service: Open) -> None:
    limits = {"address_requests_per_second": 0.001, "address_request_burst": 3}
    with serving(service(), limits=limits, trusted_proxies=("127.0.0.0/8", "::1")) as served:
        assert statuses(served, 6) == [200] * 6


def test_large_bodies_count_as_several_requests(service: Open) -> None:
    limits = {"requests_per_second": 0.001, "request_burst": 20}
    with serving(service(limits=QUICK), limits=limits) as served, served.browser("ann") as ann:
        talk = served.service.create_talk_session("ann", profile="echo", busy="queue")
        path = f"{TALKS}/{talk}/messages"
        sent = [ann.post(path, json={"content": "x" * 2_000_000}).status_code for _ in range(4)]
    assert sent == [201, 201, 201, 429]


RAISE = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))
from roost.api.server import raise_descriptor_limit
print(raise_descriptor_limit(), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_the_server_takes_as_many_descriptors_as_it_may() -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        pytest.fail("this machine allows too few descriptors to test with")
    told = subprocess.run([sys.executable, "-c", RAISE], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert told.stdout == "4096 4096\n"


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_a_flood_of_half_open_connections_for_long(service: Open) -> None:
    with server(service, request_timeout=2.0) as served:
        for _ in range(5):
            with sockets(served, 900, b"GET / HTTP/1.1\r\n") as opened:
                assert is_answered(served)
                eventually(lambda: all(is_closed(one) for one in opened), 30)
        eventually(lambda: len(served.connections) == 0)
        assert served.connections.aborted == 4_500
