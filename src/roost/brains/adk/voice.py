"""What of the ADK's events people hear: the words as they come, thoughts and calls of tools beside them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from google.adk.events import Event

from roost.core import notes
from roost.core.notes import Channel
from roost.ports import Chunk

BETWEEN = "\n\n"
"""Between what was said before a tool was called, or by one agent, and what is said after that."""
_Key = tuple[str, str | None, str]


class Voice:
    """Of one turn. A text that was streamed comes once more, whole, at its end: then only its rest is new."""

    def __init__(self) -> None:
        self._streamed: dict[_Key, str] = {}
        self._has_spoken = False

    def of(self, event: Event) -> Iterator[Chunk]:
        for channel, thought in ((Channel.THINKING, True), (Channel.FINAL, False)):
            if text := self._new(event, channel, thought):
                yield Chunk(text, channel)
        if not event.partial:
            for call in event.get_function_calls():
                yield Chunk(notes.called(call.id or "", call.name or "", call.args or {}), Channel.TOOLS)
            for response in event.get_function_responses():
                result = response.response or {}
                told = notes.answered(response.id or "", _plain(result), ok="error" not in result)
                yield Chunk(told, Channel.TOOLS)

    def afresh(self) -> None:
        """What is said from now on is a message of its own."""
        self._has_spoken = False

    def _new(self, event: Event, channel: Channel, thought: bool) -> str:
        parts = event.content.parts or [] if event.content else []
        text = "".join(part.text for part in parts if part.text and bool(part.thought) is thought)
        key = (event.author, event.branch, channel)
        before = self._streamed.get(key, "")
        if event.partial:
            self._streamed[key] = before + text
        else:
            self._streamed.pop(key, None)
            text = text.removeprefix(before) if text.startswith(before) else ""
        if not text or thought:
            return text
        gap = BETWEEN if self._has_spoken and not before else ""
        self._has_spoken = True
        return gap + text


def _plain(result: dict[str, Any]) -> str:
    if len(result) == 1 and isinstance(text := next(iter(result.values())), str):
        return text
    return json.dumps(result, ensure_ascii=False, default=str)
