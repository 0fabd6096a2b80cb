"""What a model is shown of a talk: all of it, or a summary of the older part where all would not fit.

A summary is a note of the answer before which it was made, on the channel `summary`. It begins with the number
of the last message it sums up. The log itself is as it was; whoever has another brain, or a wider window, sees
all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from roost.brains.dialogue import words
from roost.core.messages import Message, Sender
from roost.core.notes import Call, Channel, calls
from roost.ports import Turn

FULL = 0.75
"""How much of a window may be filled before a model is asked; the rest is for what it says and does."""
KEPT = 0.3
"""How much of it stays word for word when the rest is summed up."""
CUT_OFF = "[interrupted: this call has not returned, and whether it did anything is not known]"
ASK = """Sum up the conversation above for yourself: you will go on with it, and will see nothing else of this part.
Keep names, numbers, decisions, promises, open questions, what tools found out, and how the person wants to be answered.
Write plain sentences, at most 400 words, and nothing else."""

_SUMMARY = re.compile(r"Messages up to (\d+), in short:\n")


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: a summary of the messages up to `covered`, if there is one, and those after it."""

    summary: str
    covered: int
    messages: tuple[Message, ...]
    tokens: int


def view(history: Sequence[Message]) -> View:
    """What has to be shown of a history; looks no further back than to the newest summary."""
    found: list[Message] = []
    summary, covered, used = "", 0, 0
    for message in reversed(history):
        if message.seq <= covered:
            break
        found.append(message)
        used += tokens_of(message)
        if not summary:
            summary, covered = summary_in(message)
    return View(summary, covered, tuple(reversed(found)), used + tokens(summary))


def parted(shown: View, window: int) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Which of the messages are to be summed up, and which stay: the newest, from something that a person said on."""
    room = window * KEPT
    start = len(shown.messages)
    for index in range(len(shown.messages) - 1, -1, -1):
        room -= tokens_of(shown.messages[index])
        if room < 0:
            break
        if shown.messages[index].sender != Sender.AGENT:
            start = index
    return shown.messages[:start], shown.messages[start:]


def portions(messages: Iterable[Message], window: int) -> list[list[Message]]:
    """The same in order, in portions each of which a model can read at once."""
    found: list[list[Message]] = []
    room = 0.0
    for message in messages:
        room -= tokens_of(message)
        if room < 0 or not found:
            found.append([])
            room = window * FULL * 0.8 - tokens_of(message)  # the rest is for the summary before it
        found[-1].append(message)
    return found


def note(text: str, covered: int) -> str:
    """A summary as it is noted."""
    return f"Messages up to {covered}, in short:\n{text}"


def summary_in(message: Message) -> tuple[str, int]:
    """The summary that a message carries, and the number of the last message in it; nothing and 0 if it has none."""
    for one in reversed(message.notes):
        if one.channel == Channel.SUMMARY and (found := _SUMMARY.match(one.text)):
            return one.text[found.end() :], int(found[1])
    return "", 0


def acts(message: Message) -> list[Call]:
    """The tools that were called on the way to an answer, each with its result, or with the word that it has none."""
    if not message.notes:
        return []
    found = [call for one in message.notes if one.channel == Channel.TOOLS for call in calls(one.text)]
    return [call if call.result is not None else replace(call, result=CUT_OFF) for call in found]


def prompt(turn: Turn, message: Message) -> str:
    """What is new, as it is said to a model; what is no talk says what it is."""
    match turn.kind:
        case "mail":
            return f"Mail from {turn.sender}. Subject: {turn.subject}\n\n{message.content}"
        case "event":
            return f"Event {message.content}: {json.dumps(turn.data, ensure_ascii=False)}"
        case _:
            return message.content


def told(message: Message) -> str:
    """A message as one text, for a summary."""
    who = "Agent" if message.sender == Sender.AGENT else "Person"
    done = "".join(f"\n({call.tool} {json.dumps(call.arguments, ensure_ascii=False)} gave: {call.result})"
                   for call in acts(message))  # fmt: skip
    return f"{who}: {words(message)}{done}"


def clipped(text: str, window: int) -> str:
    """A text that may be too long by itself, with its middle left out if it is."""
    most = int(window * FULL / 2 * 3)
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most:,} characters are left out …]\n{text[-most // 2 :]}"


def tokens_of(message: Message) -> int:
    made = sum(tokens(call.result or "") + tokens(str(call.arguments)) + 20 for call in acts(message))
    return tokens(message.content) + made + 8


def tokens(text: str) -> int:
    """About how many there are: a third of the bytes, which is rather too many than too few."""
    return len(text) // 3 + 1 if text.isascii() else len(text.encode()) // 3 + 1
