"""A talk as a chat model reads it: people and the model in turn, the newest of it that fits its window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from roost.core.messages import Message, Sender, Status

STEP = 16
"""Where something is left out, what is kept begins at a message whose number this divides, if it can: then it begins
at the same one for several turns, and a model that has read it need not read it again."""

Said = dict[str, str]
"""`role` and `content`."""


def words(message: Message) -> str:
    """What a message says to a model; how an answer ended is stated, if it did not end well."""
    if message.sender != Sender.AGENT or message.status is Status.COMPLETE:
        return message.content
    how = "was interrupted" if message.status is Status.INTERRUPTED else "failed"
    return f"{message.content}\n[this answer {how} here]".lstrip()


def tokens(text: str) -> int:
    """About how many there are in a text, and rather more than less; `8` for the marks around it."""
    return len(text.encode()) // 3 + 8


def fitting(messages: Sequence[Message], room: int, size: Callable[[str], int] = tokens) -> list[Said]:
    """The newest messages for which there is room, as turns of people and the model; the very last one in any case."""
    start = len(messages)
    while start > 0 and (room := room - size(words(messages[start - 1]))) >= 0:
        start -= 1
    kept = list(messages[start:] or messages[-1:])
    if start > 0:
        kept = _steady(kept)
    while len(kept) > 1 and kept[0].sender == Sender.AGENT:
        kept.pop(0)
    return _in_turn(kept)


def _steady(kept: list[Message]) -> list[Message]:
    return next((kept[at:] for at, message in enumerate(kept[:-1]) if message.seq % STEP == 0), kept)


def _in_turn(messages: Sequence[Message]) -> list[Said]:
    """What one of them said in several messages becomes one; what is empty is left out."""
    said: list[Said] = []
    for message in messages:
        role = "assistant" if message.sender == Sender.AGENT else "user"
        if said and said[-1]["role"] == role:
            said[-1]["content"] += f"\n\n{words(message)}"
        elif message.content or message is messages[-1]:
            said.append({"role": role, "content": words(message)})
    return said
