"""How long it takes to begin: imports, help, the first page, and what a crash left behind."""

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

from bench.figures import Figure, bench


@bench("startup")
def startup(folder: Path) -> Iterator[Figure]:
    python = sys.executable
    bare = _best([python, "-c", "pass"])
    yield Figure("import_roost", _best([python, "-c", "import roost"]) - bare, "s", 5, 0.15)
    yield Figure("roost_help", _best([python, "-m", "roost.cli.main", "--help"]), "s", 5, 0.3)
    yield Figure("roost_up_to_a_page", _first_page(folder), "s", 1, 4.0)


def _best(command: list[str], times: int = 5) -> float:
    def once() -> float:
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start

    return min(once() for _ in range(times))


def _first_page(folder: Path) -> float:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, "ROOST_DATA": str(folder / "up")}
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "roost.cli.main", "up", "--port", str(port), "--no-browser"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while time.perf_counter() - start < 30:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5) as answer:
                    if answer.status == 200:
                        return time.perf_counter() - start
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("no page within 30 s")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)


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


@bench("recovery")
def recovery(folder: Path) -> Iterator[Figure]:
    """1,000 turns under way, kill -9, and a new process: from its start until all are answered."""
    url = f"sqlite:///{folder}/recovery.db"
    subprocess.run([sys.executable, "-c", _PENDING, url], check=False, stderr=subprocess.DEVNULL)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", _RECOVER, url], check=True)
    yield Figure("recovery_1000_turns", time.perf_counter() - start, "s", 1_000, 1.5)
