"""Mesh: notices and questions between the nodes of a cluster.

A message is a JSON list: `["tell", KIND, arguments …]`, `["ask", ID, SENDER, KIND, arguments …]` or `["reply", ID,
answer]`. All of them may be lost, doubled or late. A kind that a node does not know is ignored, since nodes may run
different versions.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from roost.ports import Host, Loop, Pending, Transport

log = logging.getLogger("roost.mesh")

Handler = Callable[..., object]
"""Handles a notice; must not wait."""
Answerer = Callable[..., Coroutine[Any, Any, Any]]
"""Answers a question with a JSON value; None means that this node cannot answer it."""
MOST_QUESTIONS = 10_000
"""Questions of others that are being answered; more are ignored."""


class Mesh:
    """Any thread may call. Handlers are set before `start`."""

    def __init__(self, host: Host, transport: Transport, node: str) -> None:
        self._host = host
        self._transport = transport
        self.node = node
        self.handlers: dict[str, Handler] = {}
        self.answerers: dict[str, Answerer] = {}
        self._asked: dict[str, Pending[Any]] = {}
        self._loop: Loop | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        return self._transport.is_up

    @property
    def problem(self) -> str:
        return self._transport.problem

    def refusal(self, seconds: float) -> str:
        """Return why the transport's servers refuse this node; empty if they do not."""
        return self._transport.refusal(seconds)

    def start(self, loop: Loop) -> None:
        """Receive messages; questions are answered on this loop."""
        self._loop = loop
        self._transport.start(self.node, self._receive)

    async def close(self) -> None:
        """Receive no more messages; callers that wait for an answer get none."""
        self._loop = None
        for asked in list(self._asked.values()):
            asked.set(None)
        await self._transport.close()

    def tell(self, node: str, kind: str, *arguments: Any) -> None:
        """Send a notice to another node."""
        self._transport.send(node, _encode(["tell", kind, *arguments]))

    def tell_all(self, kind: str, *arguments: Any) -> None:
        """Send a notice to all other nodes."""
        self._transport.send_all(_encode(["tell", kind, *arguments]))

    async def ask(self, node: str, kind: str, *arguments: Any, seconds: float) -> Any:
        """Return the answer of another node; None if it cannot answer, or does not within these seconds."""
        if not self._transport.is_up:
            return None
        question = self._host.new_id("ask")
        answer = self._asked[question] = self._host.pending()
        try:
            self._transport.send(node, _encode(["ask", question, self.node, kind, *arguments]))
            return await answer if await answer.within(seconds) else None
        finally:
            del self._asked[question]

    async def ask_each(self, questions: Sequence[tuple[Any, ...]], *, seconds: float) -> list[Any]:
        """Ask nodes at the same time: node, kind and arguments. Return the answers, None for each that is missing."""
        if not questions or not self._transport.is_up:
            return [None] * len(questions)
        latest = self._host.clock.monotonic() + seconds
        asked = [(self._host.new_id("ask"), self._host.pending()) for _ in questions]
        self._asked.update(asked)
        try:
            for (question, _), (node, kind, *arguments) in zip(asked, questions, strict=True):
                self._transport.send(node, _encode(["ask", question, self.node, kind, *arguments]))
            answers: list[Any] = []
            for _, answer in asked:
                left = max(0.0, latest - self._host.clock.monotonic())
                answers.append(await answer if await answer.within(left) else None)
            return answers
        finally:
            for question, _ in asked:
                del self._asked[question]

    def _receive(self, message: bytes) -> None:
        verb, *rest = json.loads(message)
        if verb == "tell" and (handle := self.handlers.get(rest[0])) is not None:
            handle(*rest[1:])
        elif verb == "ask":
            self._receive_question(*rest)
        elif verb == "reply" and (asked := self._asked.get(rest[0])) is not None:
            asked.set(rest[1])

    def _receive_question(self, question: str, sender: str, kind: str, *arguments: Any) -> None:
        answerer, loop = self.answerers.get(kind), self._loop
        if loop is not None and len(self._tasks) < MOST_QUESTIONS:
            if answerer is None:
                self._transport.send(sender, _encode(["reply", question, None]))
            else:
                loop.call(self._start_answer, question, sender, answerer, arguments)

    def _start_answer(self, question: str, sender: str, answerer: Answerer, arguments: tuple[Any, ...]) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(question, sender, answerer, arguments))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, question: str, sender: str, answerer: Answerer, arguments: tuple[Any, ...]) -> None:
        try:
            answer = await answerer(*arguments)
        except Exception:  # the node that asks reads the store instead
            log.exception("question of another node could not be answered")
            answer = None
        self._transport.send(sender, _encode(["reply", question, answer]))


def _encode(message: list[Any]) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()
