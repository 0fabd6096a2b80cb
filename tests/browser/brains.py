"""Brains that the browser tests steer by what they type."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from roost import ToolFailed, tool
from roost.core.talks.side_channels import Channel, answered, called
from roost.ports import Chunk, Turn

PACE = 0.05
RELEASED = Path("released")
"""Created in the folder of the server, it ends an answer that is held."""
MARKDOWN = """### Heading

Some *emphasis* and `code`, <b>no bold</b>, <script>window.hacked = 1</script>
and <img src=x onerror="window.hacked = 1">.

| name | value |
| --- | --- |
| a | 1 |

```python
#![not a picture](in code)
def greet() -> str:
    return "hello"
```

![a picture](http://pictures.example/pixel.png) and ![by reference][pixel], :material/home:

[pixel]: http://pictures.example/reference.png
"""


@tool
def reveal() -> str:
    """Says more than it should."""
    return f"asked with {os.environ['CANARY_TOKEN']}"


@tool
async def price(sku: str) -> str:
    """Takes a moment."""
    await asyncio.sleep(PACE)
    if sku == "ghost":
        raise ValueError("no such thing")
    return "4.25 <b>and</b> ![x](http://pictures.example/tool.png)"


@tool(approval=True)
def pay(euros: int, memo: str = "") -> str:
    """Asks a person first."""
    return f"{euros} paid"


def _is_released() -> bool:
    """Return whether the file exists, and remove it."""
    with suppress(FileNotFoundError):
        RELEASED.unlink()
        return True
    return False


async def steered(turn: Turn) -> AsyncIterator[str | Chunk]:
    """Does what the first word says, with the number after it; other words it repeats."""
    command, _, rest = turn.text.partition(" ")
    match command:
        case "slow":
            for number in range(1, int(rest) + 1):
                yield f"word{number} "
                await asyncio.sleep(PACE)
            yield "end."
        case "held":
            for number in range(1, int(rest) + 1):
                yield f"word{number} "
            while not _is_released():  # noqa: ASYNC110 — another process decides it
                await asyncio.sleep(PACE)
            yield "end."
        case "ponder":
            yield Chunk("Messages up to 3, in short:\nWe spoke of tea.", Channel.SUMMARY)
            for number in range(1, 11):
                yield Chunk(f"thought{number} ", Channel.THINKING)
                await asyncio.sleep(PACE)
            yield Chunk(called("1", "price", {"sku": "tea"}), Channel.TOOLS)
            await asyncio.sleep(PACE)
            yield Chunk(answered("1", "4.25 <b>and</b> ![x](http://pictures.example/tool.png)"), Channel.TOOLS)
            for word in rest.split():
                yield word + " "
                await asyncio.sleep(PACE)
        case "leak":
            yield Chunk(called("1", "reveal", {"key": os.environ["CANARY_TOKEN"]}), Channel.TOOLS)
            yield Chunk(answered("1", await turn.call_tool("reveal", {}, call_id="1")), Channel.TOOLS)
            yield "half an answer"
            raise ValueError(os.environ["CANARY_TOKEN"])
        case "clock":
            yield f"The same first line.\nIt is {time.monotonic_ns()} now.\n"
        case "work":
            async with turn.model_call("planner", {"goal": turn.text}) as call:
                await asyncio.sleep(PACE * 4)
                call.response = {"text": "First the price.", "usage": {"input_tokens": 310, "output_tokens": 25}}
            yield f"The price is {await turn.call_tool('price', {'sku': 'tea'})}.\n"
            with suppress(ToolFailed):
                await turn.call_tool("price", {"sku": "ghost"})
            yield await turn.ask(f"agent:{rest}", "work") if rest else "done"
        case "pay":
            yield await turn.call_tool("pay", {"euros": int(rest)})
        case "order":
            yield await turn.call_tool("pay", {"euros": 5, "memo": "x" * int(rest) + " the end"})
        case "fail":
            yield "half an answer"
            await asyncio.sleep(PACE)
            raise ValueError("secret-detail-of-the-inside")
        case "flaky":
            yield "an answer "
            if sum(message.content.startswith("flaky") for message in turn.history) == 0:
                raise ValueError("once")
            yield "at last"
        case "long":
            yield "x" * 79 + "\n"
            yield ("lorem ipsum dolor sit amet " * 40 + "\n\n") * (int(rest) // 1080) + "the-very-end"
        case "wait":
            await asyncio.sleep(float(rest))
            yield "waited"
        case "block":
            threading.Event().wait(float(rest))  # the loop, and all that runs on it
        case "markdown":
            yield MARKDOWN
        case _:
            yield f"You said: {turn.text}"
