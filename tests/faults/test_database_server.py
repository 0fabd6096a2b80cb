"""PostgreSQL fails: replies lost, server restarted, server hung. No acknowledged write is lost, none is done twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

import roost
from roost.stores import postgres_connection as adapter
from tests.conftest import QUICK, eventually, everything, settled
from tests.faults.pg_proxy import PostgresProxy, proxied
from tests.servers import fresh_store

pytestmark = pytest.mark.postgres
done: Counter[str] = Counter()


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    done[turn.text] += 1
    yield f"did {turn.text}"


async def talker(turn: roost.Turn) -> AsyncIterator[str]:
    yield f"heard {turn.text}"
    if turn.text == "hold":
        await asyncio.Event().wait()


@pytest.fixture
def proxy(postgres: str) -> Iterator[PostgresProxy]:
    done.clear()
    with fresh_store(postgres) as url, proxied(url) as made:
        yield made


@pytest.fixture
def service(proxy: PostgresProxy) -> Iterator[roost.AgentService]:
    with roost.open(proxy.url, brains={"talker": talker, "worker": worker}, limits=QUICK) as opened:
        yield opened


@pytest.mark.usefixtures("no_polling")
def test_a_message_whose_commit_lost_its_reply_is_there_once_and_readable_at_once(
    service: roost.AgentService, proxy: PostgresProxy
) -> None:
    talk = service.create_talk_session("ann", profile="talker")
    cursor = service.get_messages("ann", talk).cursor
    proxy.lose_reply(b"precious words")
    with pytest.raises(roost.Unavailable):
        service.add_message("ann", talk, "precious words", key="k")
    assert proxy.lost == 1
    message = service.add_message("ann", talk, "precious words", key="k")
    assert message.seq == 1
    assert service.get_messages("ann", talk, after=cursor).messages[0].content == "precious words"
    assert [m.content for m in settled(service, "ann", talk)] == ["precious words", "heard precious words"]


@pytest.mark.usefixtures("no_polling")
def test_an_interrupting_message_whose_commit_lost_its_reply_interrupts(
    service: roost.AgentService, proxy: PostgresProxy
) -> None:
    talk = service.create_talk_session("ann", profile="talker")
    service.add_message("ann", talk, "hold")
    eventually(lambda: len(everything(service, "ann", talk)) == 2)
    proxy.lose_reply(b"something else")
    with pytest.raises(roost.Unavailable):
        service.add_message("ann", talk, "something else", key="k")
    assert proxy.lost == 1
    service.add_message("ann", talk, "something else", key="k")
    settled(service, "ann", talk)
    assert [(m.content, m.status) for m in everything(service, "ann", talk)] == [
        ("hold", "complete"),
        ("heard hold", "interrupted"),
        ("something else", "complete"),
        ("heard something else", "complete"),
    ]


@pytest.mark.usefixtures("no_polling")
def test_a_task_whose_commit_lost_its_reply_is_done_once_and_at_once(
    service: roost.AgentService, proxy: PostgresProxy
) -> None:
    service.agents.create("ann", "d", profile="worker")
    proxy.lose_reply(b"count the birds")
    with pytest.raises(roost.Unavailable):
        service.tasks.send("ann", "d", "count the birds", key="k")
    assert proxy.lost == 1
    task = service.tasks.send("ann", "d", "count the birds", key="k")
    assert service.tasks.wait("ann", task, timeout=10).result == "did count the birds"
    assert done == {"count the birds": 1}


@pytest.mark.usefixtures("no_polling")
def test_mail_whose_commit_lost_its_reply_is_handled_once_and_at_once(
    service: roost.AgentService, proxy: PostgresProxy
) -> None:
    service.agents.create("ann", "d", profile="worker")
    proxy.lose_reply(b"the birds are gone")
    with pytest.raises(roost.Unavailable):
        service.mail.send("ann", "agent:d", "news", "the birds are gone", priority="high", key="k")
    assert proxy.lost == 1
    service.mail.send("ann", "agent:d", "news", "the birds are gone", priority="high", key="k")
    eventually(lambda: done["the birds are gone"])
    assert done == {"the birds are gone": 1}


def test_no_call_fails_after_a_restart_of_the_server(service: roost.AgentService, proxy: PostgresProxy) -> None:
    talks = [service.create_talk_session("ann", profile="talker") for _ in range(12)]  # on all writers
    for round_ in range(3):
        proxy.cut()
        for talk in talks:
            service.add_message("ann", talk, f"round {round_}")
        assert len(service.list_sessions("ann")) == 12
    for talk in talks:
        assert [m.content for m in settled(service, "ann", talk) if m.sender == "user"] == [
            "round 0",
            "round 1",
            "round 2",
        ]


def test_a_server_that_hangs_is_given_up_in_time_and_used_again_when_it_answers(
    service: roost.AgentService, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter.DriverConnection, "reply_timeout", 0.5)
    monkeypatch.setattr(adapter, "CONNECT_TIMEOUT", 2)  # the least that the driver takes
    talk = service.create_talk_session("ann", profile="talker", busy="queue")
    service.add_message("ann", talk, "before")
    settled(service, "ann", talk)
    proxy.hang()
    began = monotonic()
    for attempt in range(2):
        with pytest.raises(roost.Unavailable, match="cannot be reached or does not answer"):
            service.add_message("ann", talk, "meanwhile", key=f"k{attempt}")
    assert monotonic() - began < 25
    proxy.resume()
    service.add_message("ann", talk, "after", key="after")
    found = [m.content for m in settled(service, "ann", talk) if m.sender == "user"]
    assert found[0] == "before"
    assert found[-1] == "after"
    assert Counter(found)["after"] == 1


def test_many_calls_do_not_wait_for_a_server_that_hangs_one_after_the_other(
    service: roost.AgentService, proxy: PostgresProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter.DriverConnection, "reply_timeout", 0.5)
    monkeypatch.setattr(adapter, "CONNECT_TIMEOUT", 2)
    talk = service.create_talk_session("ann", profile="talker", busy="queue")
    service.add_message("ann", talk, "before")
    settled(service, "ann", talk)
    proxy.hang()
    began = monotonic()

    def writes(number: int) -> None:
        with pytest.raises(roost.Unavailable):
            service.add_message("ann", talk, f"meanwhile {number}")

    def reads(number: int) -> None:
        with pytest.raises(roost.Unavailable):
            service.list_sessions(f"user{number}")

    with ThreadPoolExecutor(60) as pool:
        for one in [*(pool.submit(writes, n) for n in range(20)), *(pool.submit(reads, n) for n in range(40))]:
            one.result()
    assert monotonic() - began < 25
    proxy.resume()
    service.add_message("ann", talk, "after", key="after")
    assert [m.content for m in settled(service, "ann", talk) if m.sender == "user"][-1] == "after"
