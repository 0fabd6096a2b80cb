"""Brains that do what a test tells them, when it tells them."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass

from roost import Message, Turn

Act = str | BaseException | Callable[[], bool]
"""One step of a play: a text is said, an error is raised, and what can be called is waited for until it is true."""

LOOK = 0.001


async def until(told: Callable[[], bool]) -> None:
    """Wait on the loop for something that happens on a test's thread."""
    while not told():  # noqa: ASYNC110 — an event of the loop could not be set from there
        await asyncio.sleep(LOOK)


@dataclass(frozen=True, slots=True)
class Heard:
    """Input of a brain in one turn."""

    text: str
    messages: tuple[Message, ...]
    history: tuple[Message, ...]
    talk: str
    run: str


class Puppet:
    """Plays, turn by turn, what was laid out for a talk; says `heard <text>` where nothing was."""

    def __init__(self) -> None:
        self._plays: dict[str, deque[tuple[Act, ...]]] = defaultdict(deque)
        self.turns: dict[str, list[Heard]] = defaultdict(list)
        self.rest: tuple[Act, ...] = ()
        """Acts in a turn for which none were laid out."""

    def play(self, talk: str, *acts: Act) -> None:
        """Lay out what it does in the next turn for which nothing is laid out yet."""
        self._plays[talk].append(acts)

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        talk = turn.talk_session_id
        self.turns[talk].append(Heard(turn.text, turn.messages, tuple(turn.history), talk, turn.run_id))
        plays = self._plays[talk]
        for act in plays.popleft() if plays else self.rest or (f"heard {turn.text}",):
            if isinstance(act, str):
                yield act
            elif isinstance(act, BaseException):
                raise act
            else:
                await until(act)


class Permits:
    """Lets a play go on one step at a time: each `give` lets one `wait` through."""

    def __init__(self) -> None:
        self._semaphore = threading.Semaphore(0)

    def give(self) -> None:
        self._semaphore.release()

    def wait(self) -> bool:
        return self._semaphore.acquire(blocking=False)


async def parrot(turn: Turn) -> AsyncIterator[str]:
    """Says what was said, word by word."""
    for word in turn.text.split():
        yield word + " "


async def counter(turn: Turn) -> AsyncIterator[str]:
    """Says how many turns it had in this talk; its state remembers."""
    turn.state["turns"] = turn.state.get("turns", 0) + 1
    yield str(turn.state["turns"])


class Stubborn:
    """Says *part1*, and on *go on* never minds what is done to it; what it says after `gate` is *part2*.

    Each kind sits in another way where it can't be reached; any message but `slow` is answered at once.
    """

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.inside = threading.Event()
        """Set when it sits there."""

    async def sleeping(self, turn: Turn) -> AsyncIterator[str]:
        async for text in self._around(turn, self._asleep):
            yield text

    async def swallowing(self, turn: Turn) -> AsyncIterator[str]:
        async for text in self._around(turn, self._deaf):
            yield text

    async def nested(self, turn: Turn) -> AsyncIterator[str]:
        async for text in self._around(turn, self._task):
            yield text

    async def tool(self, turn: Turn) -> AsyncIterator[str]:
        async for text in self._around(turn, self._subprocess):
            yield text

    async def looping(self, turn: Turn) -> AsyncIterator[str]:
        """Blocks the very loop it runs on."""
        async for text in self._around(turn, self._block):
            yield text

    def blocking(self, turn: Turn) -> Iterator[str]:
        if turn.text != "slow":
            yield f"answer to {turn.text}"
            return
        yield "part1"
        self.inside.set()
        self.gate.wait(60)
        yield "part2"

    async def _around(self, turn: Turn, sit: Callable[[], object]) -> AsyncIterator[str]:
        if turn.text != "slow":
            yield f"answer to {turn.text}"
            return
        yield "part1"
        waiting = sit()
        if asyncio.iscoroutine(waiting):
            await waiting
        yield "part2"

    async def _asleep(self) -> None:
        self.inside.set()
        await until(self.gate.is_set)

    async def _deaf(self) -> None:
        self.inside.set()
        while not self.gate.is_set():
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue

    async def _task(self) -> None:
        await asyncio.create_task(self._asleep())

    async def _subprocess(self) -> None:
        child = await asyncio.create_subprocess_exec("sleep", "60")
        self.inside.set()
        try:
            await child.wait()
        finally:
            child.kill()
            await child.wait()

    async def _block(self) -> None:
        await asyncio.sleep(0.05)  # so that what was said is seen
        self.inside.set()
        self.gate.wait(60)
