"""A program that is killed: in one talk the model is speaking, in the other a tool is at work."""

from __future__ import annotations

import sys
import threading

import roost
from roost.brains.adk import Adk
from tests.brains.adk import models

at_work = threading.Event()


async def slow(text: str = "") -> str:
    """A tool that takes long."""
    at_work.set()
    return await models.slow(text)


def main(url: str) -> None:
    service = roost.open(url, brains={"helper": Adk(models.agent(slow, models.quick))})
    for first, second in (("hello", "please wait here"), ("call quick a", "look then call slow")):
        talk = service.create_talk_session("ann", profile="helper")
        service.add_message("ann", talk, first)
        for _ in service.stream_messages("ann", talk):
            pass
        service.add_message("ann", talk, second)
        for change in service.stream_messages("ann", talk):
            if change.message.seq == 4 and change.message.content in ("you said please wait ", "look"):
                break
    at_work.wait()
    print("ready", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1])
