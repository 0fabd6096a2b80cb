"""Commands that need not load what they run on: each is a fork of one process that has loaded it all.

They are processes of their own all the same, with their own folder, environment, input and output.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

ROOT = Path(__file__).parents[2]
LIMIT = 30
LOADED = (
    "agents",
    "approvals",
    "chat",
    "dead_letters",
    "events",
    "mail",
    "meetings",
    "models",
    "runs",
    "schedules",
    "server.doctor",
    "talks.branches",
    "talks.talks",
    "talks.transcripts",
    "tasks",
)


class Forks:
    """Runs commands, one after the other. One that takes longer than `LIMIT` seconds is ended by SIGALRM."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self, arguments: tuple[str, ...], folder: Path, environment: dict[str, str], stdin: str
    ) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with TemporaryDirectory() as place:
            files = [Path(place) / name for name in ("stdin", "stdout", "stderr")]
            files[0].write_text(stdin)
            order = {"arguments": arguments, "folder": str(folder), "environment": environment, "place": place}
            print(json.dumps(order), file=self._process.stdin, flush=True)
            code = int(self._process.stdout.readline())
            return subprocess.CompletedProcess(arguments, code, files[1].read_text(), files[2].read_text())


@contextmanager
def forks(environment: dict[str, str]) -> Iterator[Forks]:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.forks"],
        cwd=ROOT,
        env=environment,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        yield Forks(process)


def main() -> None:
    """Take orders, a line each, and say with which code the command has ended."""
    for name in ("roost.client", *(f"roost.cli.commands.{name}" for name in LOADED)):
        import_module(name)
    gc.freeze()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def become(order: dict[str, Any]) -> NoReturn:
    """The command that is ordered: run it, and end as Python does, but for taking apart all that was loaded."""
    signal.alarm(LIMIT)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.dup2(os.open(f"{order['place']}/{name}", os.O_RDWR | os.O_CREAT), number)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 — it stays open
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    sys.path[0] = order["folder"]
    sys.argv = ["roost", *order["arguments"]]
    code: object = 1
    try:
        import_module("roost.cli.main").main()
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    os._exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
