"""Time until it begins: imports, help, the first page, and recovery after a crash."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.figures import Figure, bench


@bench("startup")
def startup(folder: Path) -> Iterator[Figure]:
    python = sys.executable
    bare = _best([python, "-c", "pass"])
    yield Figure("import_roost", _best([python, "-c", "import roost"]) - bare, "s", 5, 0.15)
    yield Figure("roost_help", _best([python, "-m", "roost.cli.main", "--help"]), "s", 5, 0.3)
    with Server(folder / "up") as server:
        yield Figure("roost_up_to_a_page", server.seconds, "s", 1, 4.0)


def _best(command: list[str], times: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return min(once() for _ in range(times))


class Server:
    """A running `roost up` of its own; `seconds` is the time it took until a page answered."""

    def __init__(self, data: Path, **environment: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        start = time.perf_counter()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "roost.cli.main", "up", "--port", str(port), "--no-browser"],
            env={**os.environ, "ROOST_DATA": str(data), **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self._wait(start)
        self.seconds = time.perf_counter() - start

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(20)

    def _wait(self, start: float) -> None:
        while time.perf_counter() - start < 30:
            try:
                with urllib.request.urlopen(f"{self.url}/", timeout=5) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.02)
        self._process.kill()
        raise TimeoutError("no page within 30 s")


_PENDING = """
import os, signal, sys, roost
async def never(turn):
    import asyncio
    await asyncio.sleep(1000)
    yield "never"
service = roost.open(sys.argv[1], brains={"b": never})
for n in range(1000):
    service.add_message("ann", service.create_talk_session("ann", profile="b"), "hello")
os.kill(os.getpid(), signal.SIGKILL)
"""

_RECOVER = """
import sys, roost
async def instant(turn):
    yield "ok"
with roost.open(sys.argv[1], brains={"b": instant}) as service:
    for talk in service.list_sessions("ann", limit=1000):
        for _ in service.stream_messages("ann", talk.talk_session_id):
            pass
        last = service.get_messages("ann", talk.talk_session_id).messages[-1]
        assert last.content == "ok", last
"""


_PENDING_TASKS = """
import asyncio, os, signal, sys, roost
async def never(turn):
    await asyncio.sleep(1000)
    yield "never"
service = roost.open(sys.argv[1], brains={"b": never})
agents = [f"a{n}" for n in range(100)]
service.agents.create_many("ann", agents, profile="b", max_concurrent_tasks=5)
for n in range(1000):
    service.tasks.send("ann", agents[n % 100], f"task {n}")
os.kill(os.getpid(), signal.SIGKILL)
"""

_RECOVER_TASKS = """
import sys, roost
async def instant(turn):
    yield "ok"
with roost.open(sys.argv[1], brains={"b": instant}) as service:
    tasks = service.tasks.list("ann", limit=1000)
    assert len(tasks) == 1000, len(tasks)
    for task in tasks:
        assert service.tasks.wait("ann", task.task_id, timeout=30).result == "ok"
"""


@bench("recovery")
def recovery(folder: Path) -> Iterator[Figure]:
    """1,000 turns, and 1,000 tasks of 100 agents, kill -9, and a new process: from its start until all are done."""
    for what, pending, recover in (("turns", _PENDING, _RECOVER), ("tasks", _PENDING_TASKS, _RECOVER_TASKS)):
        url = f"sqlite:///{folder}/{what}.db"
        subprocess.run([sys.executable, "-c", pending, url], check=False, stderr=subprocess.DEVNULL)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", recover, url], check=True)
        yield Figure(f"recovery_1000_{what}", time.perf_counter() - start, "s", 1_000, 1.5)
