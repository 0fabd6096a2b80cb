"""Process that renews the lease of its parent: `python -m roost.cluster.lease_process`.

A thread of the parent could be starved by a C function that holds the interpreter. And when the parent dies, whatever
the reason, its pipe ends: then the lease is given up at once, instead of after its whole length.

It reads one JSON object a line: first the settings, then a pulse of the parent with its load each moment, at last
perhaps `"leave"`. It writes a line for each renewal: when it was sent and received, and the time of the database; or
`"lost"`.
"""

from __future__ import annotations

import json
import os
import select
import time
from contextlib import suppress
from typing import Any

import psycopg

from roost.core.cluster.nodes import NodeLoad
from roost.errors import RoostError
from roost.stores.postgres_connection import PostgresConnection
from roost.stores.sql import nodes

RETRY = 0.5
"""Seconds between two attempts if a renewal fails."""


class LeaseProcess:
    def __init__(self, url: str, node: str, length: float, renewal: float, pulse: float) -> None:
        self._url = url
        self._node = node
        self._length = length
        self._renewal = renewal
        self._pulse = pulse
        """Seconds after which a parent without a pulse counts as frozen."""
        self._connection: PostgresConnection | None = None
        self._load = NodeLoad()
        self._heard = boot_time()
        self._unread = b""

    def run(self) -> None:
        due = 0.0
        while True:
            ready, _, _ = select.select([0], [], [], max(0.0, due - boot_time()))
            if ready and (end := self._read()) is not None:
                if end == "died":
                    self._give_up()
                return
            now = boot_time()
            if now >= due and now - self._heard < self._pulse:
                due = now + (self._renewal if self._renew() else RETRY)
            elif now >= due:
                due = now + RETRY

    def _read(self) -> str | None:
        """Read what the parent wrote; return how it ended, if it did."""
        data = os.read(0, 65_536)
        if not data:
            return "died"
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            message: Any = json.loads(line)
            if message == "leave":
                return "left"
            self._load = NodeLoad(**message)
            self._heard = boot_time()
        return None

    def _renew(self) -> bool:
        sent, sent_monotonic = boot_time(), time.monotonic()
        try:
            connection = self._connected()
            connection.begin()
            now = nodes.renew(connection, self._node, self._length, self._load)
            connection.commit()
        except (psycopg.Error, RoostError):
            self._disconnect()
            return False
        if now is None:
            _print("lost")
        else:
            _print({"sent": sent, "between": [sent_monotonic, time.monotonic()], "now": now})
        return True

    def _give_up(self) -> None:
        with suppress(psycopg.Error, RoostError):  # then it ends after its whole length
            connection = self._connected()
            connection.begin()
            nodes.give_up(connection, self._node)
            connection.commit()

    def _connected(self) -> PostgresConnection:
        if self._connection is None:
            # A lost connection must not cost the lease: there is time to open another one.
            self._connection = PostgresConnection(self._url, read_only=False, reply_timeout=self._renewal)
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None


def boot_time() -> float:
    """Return the seconds since the machine was started, also those for which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _print(message: object) -> None:
    try:
        os.write(1, json.dumps(message).encode() + b"\n")
    except BrokenPipeError:
        return  # the parent has died; its pulse ends too


def main() -> None:
    line = b""
    while not line.endswith(b"\n"):
        if not (byte := os.read(0, 1)):  # a buffer would take pulses too
            return
        line += byte
    LeaseProcess(**json.loads(line)).run()


if __name__ == "__main__":
    main()
