"""What a model is shown of a talk: all of it, or a summary of the older part where all would not fit.

A summary is a note of the answer before which it was made, on the channel `summary`. It begins with the number
of the last message it sums up. Of a model that cannot sum up, the older part is left out, which is noted in the same
way. The log itself is as it was: what one model was not shown, another one is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from roost.core.messages import Message, Sender, Status
from roost.core.notes import LEFT_OUT, Call, Channel, calls
from roost.ports import Turn

FULL = 0.75
"""How much of a window may be filled before a model is asked; the rest is for what it says and does."""
KEPT = 0.3
"""How much of it stays word for word when the rest is summed up."""
CUT_OFF = "[interrupted: this call has not returned, and whether it did anything is not known]"
ASK = """Sum up the conversation above for yourself: you will go on with it, and will see nothing else of this part.
Keep names, numbers, decisions, promises, open questions, what tools found out, and how the person wants to be answered.
Write plain sentences, at most 400 words, and nothing else."""

_NOTED = re.compile(r"^Messages up to (\d+)(, in short:\n|" + LEFT_OUT + ")", re.MULTILINE)
_QUOTED = r"> \g<0>"


@dataclass(frozen=True, slots=True)
class View:
    """What is shown: a summary of the messages up to `covered`, if there is one, and those after it."""

    summary: str
    covered: int
    messages: tuple[Message, ...]
    tokens: int


def view(history: Sequence[Message], *, short: bool = False) -> View:
    """What has to be shown of a history; looks no further back than to the newest summary.

    `short`: to a model that cannot sum up, no further than to what was left out when it was last asked.
    """
    found: list[Message] = []
    summary, covered, used = "", 0, 0
    for message in reversed(history):
        if message.seq <= covered:
            break
        found.append(message)
        used += tokens_of(message)
        if not covered:
            summary, covered = noted_in(message, short=short)
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


def note(summary: str, covered: int, window: int) -> str:
    """A summary as it is noted; or that there is none, and why. Nothing in it passes for another note."""
    if summary:
        return f"Messages up to {covered}, in short:\n{_NOTED.sub(_QUOTED, summary)}\n"
    return f"Messages up to {covered}{LEFT_OUT}: this model reads about {window:,} tokens at once.\n"


def noted_in(message: Message, *, short: bool) -> tuple[str, int]:
    """The newest summary that a message carries, and the number of the last message in it; else nothing and 0."""
    for one in reversed(message.notes):
        end = len(one.text)
        for found in reversed([*_NOTED.finditer(one.text)] if one.channel == Channel.SUMMARY else []):
            if found[2].endswith("\n"):
                return one.text[found.end() : end].strip(), int(found[1])
            if short:
                return "", int(found[1])
            end = found.start()
    return "", 0


def words(message: Message) -> str:
    """What a message says to a model; how an answer ended is stated, if it did not end well."""
    if message.sender != Sender.AGENT or message.status is Status.COMPLETE:
        return message.content
    how = "was interrupted" if message.status is Status.INTERRUPTED else "failed"
    return f"{message.content}\n[this answer {how} here]".lstrip()


def acts(message: Message) -> list[Call]:
    """The tools that were called on the way to an answer, each with its result, or with the word that it has none."""
    if not message.notes:
        return []
    found = [call for one in message.notes if one.channel == Channel.TOOLS for call in calls(one.text)]
    return [call if call.result is not None else replace(call, result=CUT_OFF) for call in found]


def prompt(turn: Turn, text: str) -> str:
    """What is new, as it is said to a model; what is no talk says what it is."""
    match turn.kind:
        case "mail":
            return f"Mail from {turn.sender}. Subject: {turn.subject}\n\n{text}"
        case "event":
            return f"Event {text}: {json.dumps(turn.data, ensure_ascii=False)}"
        case _:
            return text


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
