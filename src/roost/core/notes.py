"""Notes: what a brain says beside its answer, in the order in which it was said."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any


class Channel(StrEnum):
    """Where a piece of what a brain says belongs: into the answer, or into the notes beside it."""

    FINAL = "final"
    THINKING = "thinking"
    COMMENTARY = "commentary"
    TOOLS = "tools"
    """Calls of tools and their results, a JSON object a line."""
    WAITING = "waiting"
    """What it waits for, a line each: told while nothing is said yet, and of no interest afterwards."""
    SUMMARY = "summary"
    """What was said before, in short, or that it is left out: see `brains.chat.context`."""


@dataclass(frozen=True, slots=True)
class Note:
    channel: str
    text: str


Notes = tuple[Note, ...]
LEFT_OUT = " are left out"
"""In the first line of a summary that is none."""


def waited_for(notes: Notes) -> str:
    """What an answer waits for that has not begun, in a line; empty if it is not told."""
    if not notes or notes[-1].channel != Channel.WAITING:
        return ""
    return notes[-1].text.strip().rpartition("\n")[2]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool as it is noted. `result` is None while it is under way, or for ever if it was cut off."""

    call_id: str
    tool: str
    arguments: Any
    result: str | None = None
    ok: bool = True


def joined(pieces: Iterable[Note]) -> Notes:
    """The same with what follows each other on one channel as one note: however it was cut, it is the same."""
    found: list[tuple[str, list[str]]] = []
    for piece in pieces:
        if found and found[-1][0] == piece.channel:
            found[-1][1].append(piece.text)
        else:
            found.append((piece.channel, [piece.text]))
    return tuple(Note(channel, "".join(texts)) for channel, texts in found)


def length(notes: Iterable[Note]) -> int:
    return sum(len(note.text) for note in notes)


def after(notes: Notes, read: int) -> Notes:
    """What comes after so many characters of them."""
    found = []
    for note in notes:
        if read < len(note.text):
            found.append(Note(note.channel, note.text[read:]))
        read = max(0, read - len(note.text))
    return tuple(found)


def until(notes: Notes, read: int) -> Notes:
    """The first so many characters of them."""
    found = []
    for note in notes:
        if read > 0:
            found.append(Note(note.channel, note.text[:read]))
        read -= len(note.text)
    return tuple(found)


def pack(pieces: Iterable[Note]) -> str:
    """As they are stored: what is packed later is simply put behind it."""
    return "".join(json.dumps([piece.channel, piece.text], ensure_ascii=False) + "\n" for piece in pieces)


def unpack(text: str) -> Notes:
    return joined(Note(*json.loads(line)) for line in text.split("\n") if line)


# --- calls of tools -------------------------------------------------------------------------------


def called(call_id: str, tool: str, arguments: Any) -> str:
    """The line that notes that a tool is called."""
    return json.dumps({"call": call_id, "tool": tool, "args": arguments}, ensure_ascii=False) + "\n"


def answered(call_id: str, result: str, *, ok: bool = True) -> str:
    """The line that notes what came of it."""
    return json.dumps({"result": call_id, "text": result, "ok": ok}, ensure_ascii=False) + "\n"


def calls(lines: str) -> list[Call]:
    """The calls that a note on the channel `tools` tells of, in order, each with its result if it has one.

    Whatever else stands there is passed over: a note may have been cut off in the middle of a line.
    """
    found: dict[str, Call] = {}
    for line in lines.split("\n"):
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if not isinstance(told, dict):
            continue
        if "call" in told:
            call_id = str(told["call"])
            found[call_id] = Call(call_id, str(told.get("tool", "")), told.get("args"))
        elif (known := found.get(str(told.get("result")))) is not None:
            found[known.call_id] = replace(known, result=str(told.get("text", "")), ok=bool(told.get("ok", True)))
    return list(found.values())
