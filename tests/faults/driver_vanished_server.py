"""In a network of its own: connect to PostgreSQL, let the network vanish, and print when that is noticed."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable

import psycopg

from roost.stores.postgres_connection import PostgresConnection
from tests.faults.pg_proxy import proxied

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def enter_network() -> None:
    """Move this process to a new network, in which only the loopback device exists."""
    libc = ctypes.CDLL(None, use_errno=True)
    namespaces = CLONE_NEWNET if os.geteuid() == 0 else CLONE_NEWNET | CLONE_NEWUSER
    if libc.unshare(namespaces):
        sys.exit(f"no network of its own: {os.strerror(ctypes.get_errno())}")


def set_loopback(*, is_up: bool) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP if is_up else 0))


def measured(times: dict[str, float], name: str, use: Callable[[], object]) -> threading.Thread:
    """Use a connection on a thread, and write down after how many seconds that fails."""

    def run() -> None:
        started = time.monotonic()
        try:
            use()
        except psycopg.Error:
            times[name] = time.monotonic() - started

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def main(url: str) -> None:
    enter_network()
    set_loopback(is_up=True)
    times: dict[str, float] = {}
    with proxied(url) as proxy, psycopg.connect(url, autocommit=True) as admin:
        busy, idle = (PostgresConnection(proxy.url, read_only=False) for _ in range(2))
        waiting = measured(times, "waiting", lambda: busy.read("SELECT pg_sleep(9)"))
        while not admin.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'PgSleep'").fetchone():
            pass
        set_loopback(is_up=False)
        for thread in (waiting, measured(times, "sending", lambda: idle.read("SELECT 1"))):
            thread.join()
        print(json.dumps(times), flush=True)
        os._exit(0)  # the proxy would wait for its network


if __name__ == "__main__":
    main(sys.argv[1])
