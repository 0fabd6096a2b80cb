"""Context of a model: the whole talk, or a summary of its older part if the whole does not fit.

A summary is a note of the answer that follows it, on the channel `summary`. It begins with the number of the last
message that it covers. For a model that cannot summarize, the older part is omitted, which is noted in the same
way. The log itself is unchanged: another model may be shown more.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from roost.core.talks import side_channels
from roost.core.talks.attachments import Attachment
from roost.core.talks.messages import Message, Sender, Status
from roost.core.talks.side_channels import LEFT_OUT, Channel, ToolNote
from roost.ports import Turn

FULL = 0.75
"""Share of the window that may be filled before a request; the rest is for the answer and tool calls."""
KEPT = 0.3
"""Share of the window that is kept verbatim when the rest is summarized."""
FILE_CHARS = 100_000
"""Characters of a text file that a model is shown at most."""
IMAGE_TOKENS = 1_000
"""Estimated tokens of an image."""
REACH = 8
"""Number of the newest windows that are summarized of a talk without a summary."""
CUT_OFF = "[interrupted: this call has not returned, and whether it did anything is not known]"
ASK = """Sum up the conversation above for yourself: you will continue it, and will see nothing else of this part.
Keep names, numbers, decisions, promises, open questions, what tools found out, and how the person wants to be answered.
Write plain sentences, at most 400 words, and nothing else."""

_NOTED = re.compile(r"^Messages up to (\d+)(, in short:\n|" + LEFT_OUT + ")", re.MULTILINE)
_QUOTED = r"> \g<0>"


@dataclass(frozen=True, slots=True)
class HistoryView:
    """Part of a history for a model: a summary of the messages up to `covered`, if there is one, and those after it."""

    summary: str
    covered: int
    messages: tuple[Message, ...]
    tokens: int


def view(history: Sequence[Message], *, short: bool = False, most: float = inf) -> HistoryView:
    """Return the part of a history to show; reads back no further than the newest summary, or `most` tokens.

    `short`: for a model that cannot summarize, no further than the last omission.
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
        if used > most and not covered:
            covered = message.seq - 1
    return HistoryView(summary, covered, tuple(reversed(found)), used + tokens(summary))


def parted(shown: HistoryView, window: int) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """Split the messages into those to summarize and the newest, which stay and start with a message of the user."""
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
    """Split messages into portions that fit the window."""
    found: list[list[Message]] = []
    room = 0.0
    for message in messages:
        room -= tokens_of(message)
        if room < 0 or not found:
            found.append([])
            room = window * FULL * 0.8 - tokens_of(message)  # the rest is for the previous summary
        found[-1].append(message)
    return found


def note(summary: str, covered: int, window: int) -> str:
    """Return the note of a summary, or of an omission. Text in it that looks like a note is quoted."""
    if summary:
        return f"Messages up to {covered}, in short:\n{_NOTED.sub(_QUOTED, summary)}\n"
    return f"Messages up to {covered}{LEFT_OUT}: this model reads about {window:,} tokens at once.\n"


def noted_in(message: Message, *, short: bool) -> tuple[str, int]:
    """Return the newest summary in a message and the number of its last message; otherwise an empty text and 0."""
    for note in reversed(message.notes):
        end = len(note.text)
        for found in reversed([*_NOTED.finditer(note.text)] if note.channel == Channel.SUMMARY else []):
            if found[2].endswith("\n"):
                return note.text[found.end() : end].strip(), int(found[1])
            if short:
                return "", int(found[1])
            end = found.start()
    return "", 0


def words(message: Message) -> str:
    """Return the text of a message for a model, with a remark if the answer was interrupted or failed."""
    if message.sender != Sender.AGENT or message.status is Status.COMPLETE:
        return message.content
    how = "was interrupted" if message.status is Status.INTERRUPTED else "failed"
    return f"{message.content}\n[this answer {how} here]".lstrip()


def acts(message: Message) -> list[ToolNote]:
    """Return the tool calls of an answer, each with its result, or with a remark that it has none."""
    if not message.notes:
        return []
    found = side_channels.tool_calls(message.notes)
    return [call if call.result is not None else replace(call, result=CUT_OFF) for call in found]


def open_calls(message: Message) -> list[ToolNote]:
    """Return the calls of an answer that has ended with them: the client runs these tools."""
    is_ended = message.sender == Sender.AGENT and message.status is Status.COMPLETE
    return side_channels.open_calls(message.notes) if is_ended and message.notes else []


def prompt(turn: Turn, text: str) -> str:
    """Return the new input for a model; other kinds than talks are named."""
    match turn.kind:
        case "mail":
            return f"Mail from {turn.sender}. Subject: {turn.subject}\n\n{text}"
        case "event":
            return f"Event {text}: {json.dumps(turn.data, ensure_ascii=False)}"
        case "answer" if turn.answer.error is not None:
            return f"{turn.sender} could not answer your question.{_asked(turn)}\n\nReason: {turn.answer.error}"
        case "answer":
            return f"Late answer from {turn.sender} to your question.{_asked(turn)}\n\nAnswer: {text}"
        case _:
            return text


def _asked(turn: Turn) -> str:
    return f" You have stopped waiting for it.\n\nQuestion: {turn.answer.question}"


def as_dialogue_line(message: Message) -> str:
    """Return a message as one text, for a summary."""
    who = "Agent" if message.sender == Sender.AGENT else "Person"
    done = "".join(
        f"\n({call.tool} {json.dumps(call.arguments, ensure_ascii=False)} gave: {call.result})"
        for call in acts(message)
    )
    files = "".join(f"\n(attached: {one.name})" for one in message.attachments)
    return f"{who}: {words(message)}{files}{done}"


def clipped(text: str, window: int) -> str:
    """Return a text without its middle if it exceeds the window."""
    return without_middle(text, int(window * FULL / 2 * 3))


def without_middle(text: str, most: int) -> str:
    """Return at most about this many characters: the beginning and the end."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[… {len(text) - most:,} characters are left out …]\n{text[-most // 2 :]}"


def tokens_of(message: Message) -> int:
    made = sum(tokens(call.result or "") + tokens(str(call.arguments)) + 20 for call in acts(message))
    return tokens(message.content) + made + sum(map(tokens_of_file, message.attachments)) + 8


def tokens_of_file(attachment: Attachment) -> int:
    """Estimate the tokens of a file as a model is shown it."""
    if attachment.is_text:
        return min(attachment.size, FILE_CHARS) // 3 + 1
    return IMAGE_TOKENS if attachment.is_image else tokens(attachment.name) + 20


def tokens(text: str) -> int:
    """Estimate the number of tokens as a third of the bytes, which is rather too high than too low."""
    return len(text) // 3 + 1 if text.isascii() else len(text.encode()) // 3 + 1
