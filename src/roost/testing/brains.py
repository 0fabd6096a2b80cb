"""Scripted brains for tests, which record their turns."""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from roost.ports import AsyncBrain, Brain, Chunk, Turn


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


def wait(seconds: float) -> Pause:
    """Return a pause as a piece of a reply."""
    return Pause(seconds)


Piece = str | Exception | Pause
Reply = Piece | Sequence[Piece] | Callable[[Turn], "str | Exception"]
"""Reply to one turn: a text, an exception to raise, or a pause; or several of them in order."""


@dataclass(slots=True, kw_only=True)
class Given:
    """Record of one turn: what the brain was given, and whether it succeeded."""

    kind: str
    text: str
    sender: str
    attempt: int
    state: dict[str, Any]
    """State at the start of the turn."""
    subject: str = ""
    data: Any = None
    user_id: str = ""
    agent_id: str | None = None
    talk_id: str = ""
    """Talk of the turn; empty if it is none of a talk."""
    run_id: str = ""
    envelope_id: str | None = None
    """Envelope of the turn; None for a talk."""
    ended: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, turn: Turn) -> Given:
        envelope = getattr(turn._runtime, "envelope", None)
        return cls(
            kind=str(turn.kind),
            text=turn.text,
            sender=", ".join(turn.senders),
            attempt=turn.attempt,
            state=copy.deepcopy(turn.state),
            subject=turn.subject,
            data=turn.data,
            user_id=turn.user_id,
            agent_id=turn.agent_id,
            talk_id=turn.talk_session_id,
            run_id=turn.run_id,
            envelope_id=getattr(envelope, "envelope_id", None),
        )


class Script:
    """Brain that follows a script. `given` records each turn, including retries."""

    def __init__(self, replies: Sequence[Reply], matching: Mapping[str, Reply]) -> None:
        self.given: list[Given] = []
        self._replies = replies
        self._matching = matching
        self._calls = 0

    async def __call__(self, turn: Turn) -> AsyncIterator[str]:
        self.given.append(given := Given.of(turn))
        for piece in _pieces(self._reply(turn), turn):
            if isinstance(piece, Pause):
                await asyncio.sleep(piece.seconds)
            elif isinstance(piece, Exception):
                raise piece
            else:
                yield piece
        given.ended = True

    def _reply(self, turn: Turn) -> Reply:
        for pattern, reply in self._matching.items():
            if fnmatchcase(turn.text, pattern):
                return reply
        if not self._replies:
            return AssertionError(f"the script has no reply to {turn.text!r}")
        self._calls += 1
        return self._replies[min(self._calls, len(self._replies)) - 1]


def script(*replies: Reply, matching: Mapping[str, Reply] | None = None) -> Script:
    """Return a brain that gives one reply per turn, in order, and repeats the last one.

    script("hello", "world")                                  # first this, then always that
    script(RuntimeError("no"), "done")                        # fails once: the turn is retried
    script(["one moment", wait(30), "done"])                  # pieces of one reply
    script("I see", matching={"*weather*": "rain", "2+2": "4"})   # by the text of the turn: these first
    """
    return Script(replies, matching or {})


def watched(brain: Brain, notice: Callable[[Given], object], over: Callable[[Given], object] = bool) -> Brain:
    """Wrap a brain: pass each turn to `notice` before it starts, mark it when it succeeds, and pass it to `over`."""
    call = brain if inspect.isroutine(brain) else type(brain).__call__
    if inspect.isgeneratorfunction(call):

        def blocking(turn: Turn) -> Iterator[str | Chunk]:
            notice(given := Given.of(turn))
            try:
                yield from brain(turn)  # type: ignore[misc]
                given.ended = True
            finally:
                over(given)

        return blocking
    return _watched(brain, notice, over)  # type: ignore[arg-type]


def _watched(brain: AsyncBrain, notice: Callable[[Given], object], over: Callable[[Given], object]) -> AsyncBrain:
    async def on_loop(turn: Turn) -> AsyncIterator[str | Chunk]:
        notice(given := Given.of(turn))
        stream = brain(turn)
        try:
            async for chunk in stream:
                yield chunk
            given.ended = True
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()
            over(given)

    return on_loop


def _pieces(reply: Reply, turn: Turn) -> Sequence[Piece]:
    if callable(reply):
        return (reply(turn),)
    return (reply,) if isinstance(reply, str | Exception | Pause) else reply
