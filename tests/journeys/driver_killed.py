"""A program that is killed: it talks, and logs each acknowledged write before the next one.

    python driver_killed.py DATABASE LOG SEED               talk until killed
    python driver_killed.py DATABASE LOG SEED before|after K    die at the K-th commit

The brain gives each run a token, so that a text in which two runs are spliced would show.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import roost
from roost.stores.sqlite import SqliteConnection

LIMITS = roost.Limits(checkpoint_every=0.01, collect_quiet=0.01, attempts=1_000)
TALKS = 4


async def tokens(turn: roost.Turn) -> AsyncIterator[str]:
    """Says its run's token over and over, and at the end what it has answered."""
    token = turn.run_id[-8:]
    for _ in range(20):
        yield f"{token} "
        await asyncio.sleep(0.001)
    yield "answers " + ",".join(m.content for m in turn.messages)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_at_commit(side: str, number: int) -> None:
    """Kill this process just before or just after its n-th commit."""
    counted, commit = itertools.count(1), SqliteConnection.commit

    def deadly(connection: SqliteConnection) -> None:
        last = next(counted) == number
        if last and side == "before":
            die()
        commit(connection)
        if last:
            die()

    SqliteConnection.commit = deadly  # type: ignore[method-assign, assignment]


def main(database: str, log: str, seed: str, side: str = "", number: str = "0") -> None:
    if side:
        die_at_commit(side, int(number))
    with Path(log).open("a") as acknowledged:

        def note(*words: str) -> None:
            acknowledged.write("\t".join(words) + "\n")
            acknowledged.flush()
            os.fsync(acknowledged.fileno())

        with roost.open(database, brains={"tokens": tokens}, limits=LIMITS) as service:
            note("open")
            if side:
                talk_a_little(service, seed, note)
            else:
                talk_until_killed(service, seed, note)
        note("end")


def talk_a_little(service: roost.AgentService, seed: str, note: Callable[..., None]) -> None:
    """Two turns in one talk."""
    talk = service.create_talk_session("ann", profile="tokens", busy="queue")
    for n in range(2):
        say(service, talk, f"{seed}.{n}", None, note)
        wait(service, talk, f"{seed}.{n}", note)


def talk_until_killed(service: roost.AgentService, seed: str, note: Callable[..., None]) -> None:
    """Anything to any talk in any manner, most of it without waiting for the answer."""
    luck = random.Random(int(seed))
    talks = [talk.talk_session_id for talk in service.list_sessions("ann")]
    while len(talks) < TALKS:
        talks.append(service.create_talk_session("ann", profile="tokens"))
    for n in itertools.count():
        talk, text = luck.choice(talks), f"{seed}.{n}"
        say(service, talk, text, luck.choice(["interrupt", "queue", "rollback", "collect", "steer"]), note)
        if luck.random() < 0.3:
            wait(service, talk, text, note)


def say(service: roost.AgentService, talk: str, text: str, busy: str | None, note: Callable[..., None]) -> None:
    message = service.add_message("ann", talk, text, key=text, busy=busy)
    note("message", talk, str(message.seq), text)


def wait(service: roost.AgentService, talk: str, text: str, note: Callable[..., None]) -> None:
    for _ in service.stream_messages("ann", talk):
        pass
    note("answered", talk, text)


if __name__ == "__main__":
    main(*sys.argv[1:])
