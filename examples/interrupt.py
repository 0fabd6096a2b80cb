"""A new message interrupts an answer: the text so far is kept, the rest is never produced."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import roost


async def slow(turn: roost.Turn) -> AsyncIterator[str]:
    if turn.text != "tell me everything":
        yield f"You said {turn.text!r}."
        return
    yield "part1 "
    await asyncio.sleep(60)
    yield "part2"


def main() -> None:
    with roost.open("sqlite:///interrupt.db", brains={"slow": slow}) as service:
        talk = service.create_talk_session("ann", profile="slow", busy="interrupt")
        service.add_message("ann", talk, "tell me everything")
        wait_for("part1", service, talk)
        service.add_message("ann", talk, "never mind")
        for _ in service.stream_messages("ann", talk):
            pass  # until the run has ended
        for message in service.get_messages("ann", talk).messages:
            print(f"{message.seq} {message.sender:5} {message.status:11} {message.content}")


def wait_for(text: str, service: roost.AgentService, talk: str) -> None:
    for change in service.stream_messages("ann", talk):
        if text in change.message.content:
            return


if __name__ == "__main__":
    main()
