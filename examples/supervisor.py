"""A person talks to a supervisor, which asks workers in its turn and answers with their results."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import roost

PRICES = {"tea": 3, "coffee": 5}


async def clerk(turn: roost.Turn) -> AsyncIterator[str]:
    """Answer with a price; unknown goods take longer."""
    if turn.text not in PRICES:
        await asyncio.sleep(0.5)
    yield f"{PRICES.get(turn.text, 'no')} crowns"


async def supervisor(turn: roost.Turn) -> AsyncIterator[str]:
    for word in turn.text.split():
        yield f"{word}: "
        yield await turn.ask("agent:clerk", word, deadline=60)  # stopping the talk cancels the request
        yield "\n"


with (
    tempfile.TemporaryDirectory() as folder,
    roost.open(f"sqlite:///{Path(folder) / 'shop.db'}", brains={"supervisor": supervisor, "clerk": clerk}) as service,
):
    service.agents.create("ann", "clerk", profile="clerk")
    talk = service.create_talk_session("ann", profile="supervisor")

    service.add_message("ann", talk, "tea coffee")
    for change in service.stream_messages("ann", talk):
        if change.message.sender == "agent":
            print(change.text, end="")

    service.add_message("ann", talk, "gold")  # the clerk is slow, and the supervisor waits
    for change in service.stream_messages("ann", talk, follow=True):
        if change.message.content == "gold: ":
            break
    service.add_message("ann", talk, "tea")  # interrupts the answer: the request is cancelled
    for _ in service.stream_messages("ann", talk):
        pass
    for message in service.get_messages("ann", talk).messages[2:]:
        print(f"{message.sender} ({message.status}): {message.content}".rstrip())
