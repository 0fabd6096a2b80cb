"""A program that is killed as soon as the figures of its work are in the store.

    python driver_figures.py DATABASE

Its clock runs twenty times as fast, so that it does not take ten seconds.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator

import roost
from roost.hosts.threads import RealClock

FAST = 20
WORKS, FAILS = 5, 1


async def works(turn: roost.Turn) -> AsyncIterator[str]:
    """`fail` fails."""
    if turn.text == "fail":
        raise ValueError("as asked")
    yield "done"


if __name__ == "__main__":
    begin = time.time()
    RealClock.now = staticmethod(lambda: begin + FAST * (time.time() - begin))
    with roost.open(sys.argv[1], brains={"works": works}) as service:
        service.agents.create("ann", "d", profile="works", max_attempts=1)
        for text in ["work"] * WORKS + ["fail"] * FAILS:
            service.tasks.wait("ann", service.tasks.send("ann", "d", text))
        while sum(one.count for one in service.monitor.figures("ann", since=begin - 60, name="runs").series) < 6:
            threading.Event().wait(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
