"""Output of the ADK's events: text as it is streamed, with thoughts and tool calls as notes.

Output and session agree. Streamed text cannot be taken back: if the final event differs, the session keeps the
streamed text. To output the other text as well could reveal what a callback removed from the stream.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from google.adk.events import Event
from google.genai import types

from roost.core.talks import side_channels
from roost.core.talks.side_channels import Channel
from roost.ports import Chunk

BETWEEN = "\n\n"
"""Separator between texts before and after a tool call, and of two agents."""
_Speaker = tuple[str, str | None]
"""Agent and its branch."""


@dataclass(slots=True)
class _Speech:
    """Text of one event: streamed pieces, and then the event itself."""

    speaker: _Speaker
    invocation_id: str
    text: str = ""
    heard: int = 0
    """Characters that were output."""
    is_whole: bool = False


class EventOutput:
    """Output of one turn. Texts of concurrent agents are output one after the other, each in one piece."""

    def __init__(self, seconds: Callable[[str], float | None] = lambda _: None) -> None:
        self._seconds = seconds
        """Returns the duration of a tool call by its id."""
        self._speeches: list[_Speech] = []
        """Unfinished texts, in order of their starts. The first one is streamed."""
        self._thoughts: dict[_Speaker, str] = {}
        self._has_spoken = False

    def of(self, event: Event) -> Iterator[Chunk]:
        if thought := self._new_thoughts(event):
            yield Chunk(thought, Channel.THINKING)
        self._take(event)
        yield from self._pass_on()
        if not event.partial:
            for call in event.get_function_calls():
                yield Chunk(side_channels.called(call.id or "", call.name or "", call.args or {}), Channel.TOOLS)
            for response in event.get_function_responses():
                result, call_id = response.response or {}, response.id or ""
                ok, seconds = "error" not in result, self._seconds(call_id)
                yield Chunk(side_channels.answered(call_id, _plain(result), ok=ok, seconds=seconds), Channel.TOOLS)

    def as_heard(self, event: Event) -> Event:
        """Return a final event with the text that is output."""
        speech = self._open(event)
        if speech is None or event.partial or not _is_said(event):
            return event
        said = _words(event)
        kept = speech.text + _addition(speech.text, said)
        return event if kept == said else _with_words(event, kept)

    def unfinished(self) -> list[Event]:
        """Return events for streamed text that no final event followed."""
        return [
            Event(
                invocation_id=speech.invocation_id,
                author=speech.speaker[0],
                branch=speech.speaker[1],
                content=types.Content(role="model", parts=[types.Part(text=speech.text)]),
            )
            for speech in self._speeches
            if speech.text and not speech.is_whole
        ]

    def end(self) -> Iterator[Chunk]:
        """Yield text that waited for the end of another agent."""
        for speech in self._speeches:
            speech.is_whole = True
        yield from self._pass_on()

    def start_message(self) -> None:
        """Start a new message with the next text."""
        self._has_spoken = False

    def _take(self, event: Event) -> None:
        said, speech = _words(event), self._open(event)
        if speech is None:
            if not said:
                return
            speech = _Speech((event.author, event.branch), event.invocation_id)
            self._speeches.append(speech)
        if event.partial:
            speech.text += said
        elif _is_said(event):
            speech.text += _addition(speech.text, said)
            speech.is_whole = True

    def _open(self, event: Event) -> _Speech | None:
        speaker = event.author, event.branch
        return next((speech for speech in self._speeches if speech.speaker == speaker and not speech.is_whole), None)

    def _pass_on(self) -> Iterator[Chunk]:
        while self._speeches:
            speech = self._speeches[0]
            if new := speech.text[speech.heard :]:
                gap = BETWEEN if self._has_spoken and not speech.heard else ""
                self._has_spoken, speech.heard = True, len(speech.text)
                yield Chunk(gap + new, Channel.FINAL)
            if not speech.is_whole:
                return
            del self._speeches[0]

    def _new_thoughts(self, event: Event) -> str:
        text, speaker = _words(event, thought=True), (event.author, event.branch)
        before = self._thoughts.get(speaker, "")
        if event.partial:
            self._thoughts[speaker] = before + text
            return text
        self._thoughts.pop(speaker, None)
        return text.removeprefix(before) if text.startswith(before) else ""


def _words(event: Event, *, thought: bool = False) -> str:
    parts = event.content.parts or [] if event.content else []
    return "".join(part.text for part in parts if part.text and bool(part.thought) is thought)


def _is_said(event: Event) -> bool:
    """Return whether an event has text of a model; others change state or carry tool results."""
    parts = event.content.parts or [] if event.content else []
    return event.author != "user" and any(part.function_response is None for part in parts)


def _addition(streamed: str, said: str) -> str:
    """Return the text of a final event beyond its streamed part; nothing if it differs."""
    return said[len(streamed) :] if said.startswith(streamed) else ""


def _with_words(event: Event, words: str) -> Event:
    parts = event.content.parts or [] if event.content else []
    thoughts = [part for part in parts if part.thought]
    others = [part for part in parts if not part.thought and not part.text]
    role = event.content.role if event.content else "model"
    content = types.Content(role=role, parts=[*thoughts, types.Part(text=words), *others])
    return event.model_copy(update={"content": content})


def _plain(result: dict[str, Any]) -> str:
    if len(result) == 1 and isinstance(text := next(iter(result.values())), str):
        return text
    return json.dumps(result, ensure_ascii=False, default=str)
