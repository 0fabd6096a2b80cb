"""Talks and tasks on a disk whose power is cut after WRITES writes: DATABASE LOG SEED WRITES."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import AsyncIterator

import roost
from tests.faults.lossy_files import LossyFiles


async def worker(turn: roost.Turn) -> AsyncIterator[str]:
    turn.state["done"] = [*turn.state.get("done", []), turn.text]
    yield f"did {turn.text}"


def main(database: str, log: str, seed: int, writes: int) -> None:
    files = LossyFiles()
    acknowledged = open(log, "ab", buffering=0)  # noqa: SIM115 — it is open until the power is cut
    service = roost.open(database, brains={"worker": worker})
    if not service.agents.list("ann"):
        service.agents.create("ann", "d", profile="worker", max_concurrent_tasks=1)
    talk = service.create_talk_session("ann", profile="worker", busy="queue")

    def send(kind: str) -> None:
        for number in itertools.count():
            text = f"{kind}-{seed}-{number}"
            if kind == "task":
                service.tasks.send("ann", "d", text)
            else:
                service.add_message("ann", talk, text)
            acknowledged.write(f"{kind}\t{talk}\t{text}\n".encode())

    files.lose_power(seed, writes)
    for kind in ("task", "message"):
        threading.Thread(target=send, args=(kind,), daemon=True).start()
    threading.Event().wait(60)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
