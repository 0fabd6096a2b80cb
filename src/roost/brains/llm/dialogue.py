"""A talk in the words of pydantic-ai: what a model is shown, and how room is made in it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from roost.brains.dialogue import words
from roost.brains.llm import context
from roost.brains.llm.context import View
from roost.core.messages import Message, Sender

SUMMED_UP = "[What was said before, in short]\n"
LEFT_OUT = "[left out to make room: {length:,} characters]"


class Dialogue:
    """Grows by what is asked, answered and done. What comes one after the other on one side is one message."""

    def __init__(self, instructions: str | None) -> None:
        self.messages: list[ModelMessage] = []
        self._instructions = instructions

    def show(self, view: View) -> None:
        """All that was said before, or the summary of its older part."""
        if view.summary:
            self.ask(SUMMED_UP + view.summary)
        for message in view.messages:
            if message.sender == Sender.AGENT:
                self._show_answer(message)
            else:
                self.ask(message.content)

    def ask(self, text: str) -> None:
        self.request([UserPromptPart(text)])

    def request(self, parts: Sequence[ModelRequestPart]) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, ModelRequest):
            self.messages[-1] = replace(last, parts=[*last.parts, *parts])
        else:
            self.messages.append(ModelRequest(list(parts), instructions=self._instructions))

    def answer(self, parts: Sequence[ModelResponsePart]) -> None:
        self.messages.append(ModelResponse(list(parts)))

    def _show_answer(self, message: Message) -> None:
        # The ids that providers gave may come again.
        acts = [(f"m{message.seq}_{number}", act) for number, act in enumerate(context.acts(message))]
        if acts:
            self.answer([ToolCallPart(wired(act.tool), _arguments(act.arguments), name) for name, act in acts])
            self.request([ToolReturnPart(wired(act.tool), act.result, name) for name, act in acts])
        if said := words(message):
            self.answer([TextPart(said)])

    def make_room(self, tokens: int) -> None:
        """Leave out what tools gave, the oldest first, until so many tokens are free; what came last stays."""
        for index, message in enumerate(self.messages[:-1]):
            if isinstance(message, ModelRequest) and tokens > 0:
                parts = []
                for part in message.parts:
                    text = part.content if isinstance(part, ToolReturnPart) else None
                    if isinstance(text, str) and len(text) > 200 and tokens > 0:
                        tokens -= context.tokens(text)
                        part = replace(part, content=LEFT_OUT.format(length=len(text)))  # type: ignore[arg-type]
                    parts.append(part)
                self.messages[index] = replace(message, parts=parts)


def told(messages: Iterable[ModelMessage]) -> list[dict[str, Any]]:
    """What decides the answer, as JSON, and nothing that changes from try to try."""
    return [{"role": message.kind, "parts": [_told(part) for part in message.parts]} for message in messages]


def summing(summary: str, messages: Iterable[Message], window: int) -> list[ModelMessage]:
    """The request to sum up what was said, on top of an earlier summary."""
    told = "\n\n".join(context.clipped(context.told(message), window) for message in messages)
    before = f"{SUMMED_UP}{summary}\n\n" if summary else ""
    return [ModelRequest([UserPromptPart(f"{before}{told}\n\n{context.ASK}")])]


def wired(name: str) -> str:
    """A tool's name as providers take it: without dots."""
    return name.replace(".", "__")


def _arguments(given: Any) -> dict[str, Any]:
    return given if isinstance(given, dict) else {"given": given}


def _told(part: Any) -> dict[str, Any]:
    kept = {"kind": part.part_kind}
    for name in ("content", "tool_name", "args"):
        if hasattr(part, name):
            value = getattr(part, name)
            kept[name] = value if isinstance(value, str) else json.loads(json.dumps(value, default=str))
    return kept
