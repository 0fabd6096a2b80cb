"""A process that is paused, replaced and comes back: nothing it does then is written, and nobody sees its words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import roost
from tests.conftest import ENVIRONMENT, QUICK, eventually, everything, settled
from tests.forks import Popen
from tests.servers import fresh_store

OWNER = """
import asyncio, sys, roost

async def slow(turn):
    for number in range(10_000):
        yield f"{turn.text}-{number} "
        await asyncio.sleep(0.01)

async def worker(turn):
    await asyncio.sleep(0.3)
    turn.state["done"] = turn.state.get("done", 0) + 1
    yield "done by the first"

service = roost.open(sys.argv[1], brains={"slow": slow, "worker": worker})
service.agents.create("ann", "d", profile="worker", max_concurrent_tasks=1)
talk = service.create_talk_session("ann", profile="slow")
service.add_message("ann", talk, "first")
for number in range(20):
    service.tasks.send("ann", "d", f"task {number}")
print(talk, flush=True)
for line in sys.stdin:
    for number in range(20):
        try:
            service.add_message("ann", talk, "written by the one that came back")
            print("accepted", flush=True)
            break
        except roost.Unavailable as error:
            print("refused", error, flush=True)
"""


async def slow(turn: roost.Turn):  # type: ignore[no-untyped-def]
    yield f"answered {turn.text}"


async def worker(turn: roost.Turn):  # type: ignore[no-untyped-def]
    turn.state["done"] = turn.state.get("done", 0) + 1
    yield "done by the second"


@contextmanager
def paused(url: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process in the middle of its work that does not run any more, and the talk that it answers."""
    command = [sys.executable, "-c", OWNER, url]
    with Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as child:
        try:
            assert child.stdout is not None
            talk = child.stdout.readline().strip()
            threading.Event().wait(1.0)  # into the middle of its work
            child.send_signal(signal.SIGSTOP)
            yield child, talk
        finally:
            child.kill()


def come_back(child: subprocess.Popen[str]) -> list[str]:
    """Let it run on; what it says of its writes."""
    assert child.stdin is not None
    assert child.stdout is not None
    child.send_signal(signal.SIGCONT)
    child.stdin.write("write\n")
    child.stdin.flush()
    first = child.stdout.readline()
    return [first] if first == "accepted\n" else [first, *(child.stdout.readline() for _ in range(19))]


@pytest.mark.postgres
def test_one_that_was_replaced_while_it_was_paused_writes_nothing(postgres: str) -> None:
    with fresh_store(postgres) as url, paused(url) as (child, talk):
        with psycopg.connect(url, autocommit=True) as admin:  # as the network does, when it cuts off a machine
            mine = "pid <> pg_backend_pid() AND datname = current_database()"
            cut = admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {mine}".encode())
            assert len(cut.fetchall()) > 2, "its lock, a writer and a reader; others connect when they are needed"
        with roost.open(url, brains={"slow": slow, "worker": worker}, limits=QUICK) as service:
            settled(service, "ann", talk)
            eventually(lambda: not service.agents.get("ann", "d").queue_depth, 30)
            before = everything(service, "ann", talk), service.agents.inspect("ann", "d").turn_state
            said = come_back(child)
            assert all(line.startswith("refused") for line in said), said
            assert (everything(service, "ann", talk), service.agents.inspect("ann", "d").turn_state) == before
    assert before[0][-1].content == "answered first"
    assert before[1]["done"] == 20


def test_a_paused_process_keeps_its_file_and_continues(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'roost.db'}"
    with paused(url) as (child, talk):
        with pytest.raises(roost.Unavailable, match=f"in use by process {child.pid}"):
            roost.open(url, limits=QUICK)
        assert come_back(child)[0] == "accepted\n"
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    with roost.open(url, brains={"slow": slow, "worker": worker}, limits=QUICK) as service:
        settled(service, "ann", talk)
        found = [m.content for m in everything(service, "ann", talk) if m.sender == "user"]
        eventually(lambda: not service.agents.get("ann", "d").queue_depth, 30)
        assert service.agents.inspect("ann", "d").turn_state["done"] == 20
    assert found == ["first", "written by the one that came back"]
