"""A program that is killed while it deletes a user: python driver_deletion.py DATABASE USER WRITES."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import AsyncIterator
from typing import Any

import roost


async def parrot(turn: roost.Turn) -> AsyncIterator[str]:
    yield turn.text


def killed_after(service: roost.AgentService, writes: int) -> None:
    """Die before the next write after this number of them; those of other threads do not count."""
    store: Any = service.roost.context.store
    real, left = store.write, iter(range(writes))

    def write(*args: Any, **options: Any) -> Any:
        if threading.current_thread() is threading.main_thread() and next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **options)

    store.write = write


def main(database: str, user: str, writes: int) -> None:
    with roost.open(f"sqlite:///{database}", brains={"parrot": parrot}) as service:
        killed_after(service, writes)
        service.users.delete("root", user)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
