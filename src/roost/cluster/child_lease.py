"""Lease that a child process renews; this side sends it pulses and watches the deadline."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace

from roost.cluster.lease_process import boot_time
from roost.core.cluster.nodes import LeaseTimes, NodeLoad
from roost.hosts.store_clock import StoreClock

log = logging.getLogger("roost.cluster")

FROZEN = 0.5
"""Share of the lease after which a parent without a pulse counts as frozen."""
PULSES = 6
"""Pulses in this time."""
END_TIMEOUT = 3.0


class ChildLease:
    """Starts the child, and another one if it dies."""

    def __init__(self, url: str, node: str, times: LeaseTimes, clock: StoreClock) -> None:
        self._settings = {
            "url": url,
            "node": node,
            "length": times.length,
            "renewal": times.renewal,
            "pulse": times.length * FROZEN,
        }
        self._pause = times.length * FROZEN / PULSES
        self._times = times
        self._clock = clock
        self._deadline = boot_time() + times.first - times.margin
        self._closing = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None

    @property
    def pid(self) -> int | None:
        """Return the process id of the child."""
        return None if self._child is None else self._child.pid

    def start(self, load: Callable[[], NodeLoad]) -> None:
        self._thread = threading.Thread(target=self._keep, args=(load,), name="roost-lease", daemon=True)
        self._thread.start()

    def remaining(self) -> float:
        return self._deadline - boot_time()

    async def close(self) -> None:
        self._closing.set()
        if self._thread is not None:
            self._thread.join(END_TIMEOUT)

    def _keep(self, load: Callable[[], NodeLoad]) -> None:
        while not self._closing.is_set():
            child = self._child = self._start_child()
            assert child.stdout is not None
            reader = threading.Thread(target=self._follow, args=(child,), name="roost-lease-reader", daemon=True)
            reader.start()
            self._send_pulses(child, load)
            self._end(child)
            reader.join(END_TIMEOUT)
            child.stdout.close()
            if not self._closing.wait(0.1):
                log.warning("process that renews the lease has ended; starting another one")

    def _start_child(self) -> subprocess.Popen[bytes]:
        # The URL may contain a password: it is not in the arguments, which others can see.
        command = [sys.executable, "-m", "roost.cluster.lease_process"]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._write(child, self._settings)
        return child

    def _send_pulses(self, child: subprocess.Popen[bytes], load: Callable[[], NodeLoad]) -> None:
        """Send pulses until this node leaves or the child has died."""
        while child.poll() is None:
            if self._closing.is_set():
                self._write(child, "leave")
                return
            if not self._write(child, asdict(replace(load(), clock_error=self._clock.error))):
                return
            self._closing.wait(self._pause)

    def _follow(self, child: subprocess.Popen[bytes]) -> None:
        assert child.stdout is not None
        for line in child.stdout:
            message = json.loads(line)
            if message == "lost":
                self._deadline = 0.0
                return
            self._deadline = message["sent"] + self._times.length - self._times.margin
            self._clock.adjust(message["now"], *message["between"])

    def _write(self, child: subprocess.Popen[bytes], message: object) -> bool:
        assert child.stdin is not None
        try:
            child.stdin.write(json.dumps(message).encode() + b"\n")
            child.stdin.flush()
        except OSError:
            return False
        return True

    def _end(self, child: subprocess.Popen[bytes]) -> None:
        """Wait for the child, which ends by itself; the pipe stays open until then, or it would give the lease up."""
        try:
            child.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        with suppress(OSError):
            if child.stdin is not None:
                child.stdin.close()
