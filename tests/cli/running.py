"""The command line as people use it: real processes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from roost.cli.commands.server.ports import bind
from roost.cli.main import app
from tests.conftest import eventually
from tests.forks import Popen, run
from tests.servers import ROOT

COMMAND = [sys.executable, "-m", "roost"]
PATIENCE = 60


def environment(folder: Path) -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("ROOST_")}
    paths = f"{ROOT / 'src'}:{ROOT}"
    return ours | {
        "ROOST_DATA": str(folder / "data"),
        "PYTHONPATH": paths,
        "ROOST_USER": "ann",
        "PYTHONUNBUFFERED": "1",
    }


def roost(folder: Path, *arguments: str, stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder of its own, to its end."""
    return run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=environment(folder) | variables,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def command(*arguments: str, stdin: str = "", color: bool = False) -> Any:
    """The same in this process; for tests that have a `home`."""
    return CliRunner().invoke(app, arguments, input=stdin, color=color)


def free_port() -> int:
    listeners = bind("127.0.0.1", 0)
    port: int = listeners[0].getsockname()[1]
    for listener in listeners:
        listener.close()
    return port


@dataclass
class Up:
    """A running `roost up`."""

    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()

    @property
    def lock(self) -> Path:
        return self.folder / "data" / "roost.db.lock"

    def link(self) -> str:
        found = re.search(r"http://\S+/enter\S+", self.output)
        assert found, self.output
        return found.group()

    def end(self, number: int) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def up(folder: Path, *arguments: str, command: str = "up", ready: str = "Stop with", **variables: str) -> Iterator[Up]:
    port = free_port()
    with (folder / "output").open("wb") as output:
        process = Popen[bytes](
            [*COMMAND, command, "--port", str(port), *arguments],
            cwd=folder,
            env=environment(folder) | variables,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    running = Up(folder, port, process)
    try:
        eventually(_has_started(running, ready), PATIENCE)
        yield running
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)


def _has_started(running: Up, ready: str) -> Callable[[], bool]:
    def has() -> bool:
        assert running.process.poll() is None, running.output
        return ready in running.output

    return has
