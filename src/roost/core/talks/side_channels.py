"""Side channels of an answer: notes with thoughts, tool calls and more, in order."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Channel(StrEnum):
    """Channel of a chunk: the answer, or one of the side channels."""

    FINAL = "final"
    THINKING = "thinking"
    COMMENTARY = "commentary"
    TOOLS = "tools"
    """Tool calls and their results, one JSON object per line."""
    WAITING = "waiting"
    """Reasons why the run waits, one line each; shown until the answer begins."""
    SUMMARY = "summary"
    """Summary of earlier messages, or a remark that they are left out; see `brains.chat.context`."""


@dataclass(frozen=True, slots=True)
class Note:
    """Text on a side channel."""

    channel: str
    text: str


Notes = tuple[Note, ...]
LONGEST_CALL = 1e9
"""Seconds; brains may write anything into a note."""
LEFT_OUT = " are left out"
"""Marks the first line of a remark that replaces a summary."""


def waited_for(notes: Notes) -> str:
    """Return in one line what an answer waits for before it begins; empty if unknown."""
    if not notes or notes[-1].channel != Channel.WAITING:
        return ""
    return notes[-1].text.strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class ToolNote:
    """Tool call in a note. `result` is None while it runs, and stays None if it was cut off."""

    call_id: str
    tool: str
    arguments: Any
    result: str | None = None
    ok: bool = True
    seconds: float | None = None
    """Duration of the call, if it is known."""


def joined(pieces: Iterable[Note]) -> Notes:
    """Join adjacent notes of one channel, so that the result does not depend on chunk borders."""
    found: list[tuple[str, list[str]]] = []
    for piece in pieces:
        if found and found[-1][0] == piece.channel:
            found[-1][1].append(piece.text)
        else:
            found.append((piece.channel, [piece.text]))
    return tuple(Note(channel, "".join(texts)) for channel, texts in found)


def length(notes: Notes) -> int:
    return sum([len(note.text) for note in notes]) if notes else 0  # without notes, no generator either


def after(notes: Notes, read: int) -> Notes:
    """Return the notes after the first `read` characters."""
    if not notes:
        return notes
    found = []
    for note in notes:
        if read < len(note.text):
            found.append(Note(note.channel, note.text[read:]))
        read = max(0, read - len(note.text))
    return tuple(found)


def until(notes: Notes, read: int) -> Notes:
    """Return the first `read` characters of the notes."""
    if not notes:
        return notes
    found = []
    for note in notes:
        if read > 0:
            found.append(Note(note.channel, note.text[:read]))
        read -= len(note.text)
    return tuple(found)


def pack(pieces: Iterable[Note]) -> str:
    """Return the stored form. Packed texts can be concatenated."""
    return "".join(json.dumps([piece.channel, piece.text], ensure_ascii=False) + "\n" for piece in pieces)


def unpack(text: str) -> Notes:
    return joined(Note(*json.loads(line)) for line in text.split("\n") if line)


# --- calls of tools -------------------------------------------------------------------------------


def called(call_id: str, tool: str, arguments: Any) -> str:
    """Return the line for a tool call."""
    return json.dumps({"call": call_id, "tool": tool, "args": arguments}, ensure_ascii=False) + "\n"


def answered(call_id: str, result: str, *, ok: bool = True, seconds: float | None = None) -> str:
    """Return the line for the result of a tool call, and its duration if it is known."""
    line: dict[str, Any] = {"result": call_id, "text": result, "ok": ok}
    if seconds is not None:
        line["seconds"] = round(seconds, 3)
    return json.dumps(line, ensure_ascii=False) + "\n"


def is_telling(packed: str) -> bool:
    """Return whether stored notes hold thoughts or tool calls, and are kept even without an answer."""
    return any(note.channel in (Channel.THINKING, Channel.TOOLS) for note in unpack(packed))


def calls(lines: str) -> list[ToolNote]:
    """Return the tool calls of a note on the channel `tools`, in order, with their results.

    Other lines are skipped: a note may have been cut off in the middle of a line.
    """
    found: dict[str, ToolNote] = {}
    for line in lines.split("\n"):
        try:
            note = json.loads(line)
        except ValueError:
            continue
        if not isinstance(note, dict):
            continue
        if "call" in note:
            call_id = str(note["call"])
            found[call_id] = ToolNote(call_id, str(note.get("tool", "")), note.get("args"))
        elif (known := found.get(str(note.get("result")))) is not None:
            text, ok, seconds = str(note.get("text", "")), bool(note.get("ok", True)), note.get("seconds")
            is_known = isinstance(seconds, int | float) and 0 <= seconds < LONGEST_CALL
            found[known.call_id] = replace(known, result=text, ok=ok, seconds=seconds if is_known else None)
    return list(found.values())


def tool_calls(notes: Notes) -> list[ToolNote]:
    """Return the tool calls of an answer, in order."""
    return calls("".join(note.text for note in notes if note.channel == Channel.TOOLS))


def open_calls(notes: Notes) -> list[ToolNote]:
    """Return the calls without a result; a complete answer ends with those that its client has to run."""
    return [call for call in tool_calls(notes) if call.result is None]


def results(text: str) -> dict[str, str]:
    """Return the results of calls in a text that consists of such lines, by call; none for any other text."""
    found: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):  # in JSON there are other ends of lines
        try:
            note = json.loads(line)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(note, dict) or not {"result", "text"} <= note.keys() <= {"result", "text", "ok", "seconds"}:
            return {}
        found[str(note["result"])] = str(note["text"])
    return found
