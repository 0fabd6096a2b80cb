"""Action log: digests of the actions of a turn, stored with its run and compared with a replay."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

from roost.core.journal.steps import Content, content_key
from roost.core.talks.side_channels import Channel

COMPARED = 25
"""Actions of one turn that are stored with a digest; further ones are only counted by kind."""
THOUGHTS = frozenset({Channel.THINKING, Channel.COMMENTARY, Channel.SUMMARY})
"""Channels whose text is compared. Tool calls are compared as steps."""
PARTIAL = ("thoughts ", "state ")
"""Labels of actions that are known only when a turn has ended."""
_LABEL = 80

Kept = Mapping[str, Any]
"""`done`: digests by kind and recipient. `more`: numbers by kind."""


class ActionLog:
    """Actions of one turn: sends, requests, steps, memories, sleep and thoughts. Their order does not matter.

    Contents are hashed only when the log is stored: most turns store none.
    """

    __slots__ = ("_done", "_more", "_thoughts")

    def __init__(self) -> None:
        self._done: list[Content | None] = []
        self._more: dict[str, int] = {}
        self._thoughts: dict[str, Any] = {}

    def add(self, content: Content) -> int:
        """Add an action; return its position, for `remove`."""
        position = len(self._done)
        if position < COMPARED:
            self._done.append(content)
            return position
        self._more[content[0]] = self._more.get(content[0], 0) + 1
        return -1

    def remove(self, position: int, content: Content) -> None:
        """Remove an action that was refused."""
        if position >= 0:
            self._done[position] = None
        else:
            self._more[content[0]] -= 1

    def think(self, channel: str, text: str) -> None:
        if channel in THOUGHTS:
            self._thoughts.setdefault(channel, sha256()).update(text.encode(errors="surrogatepass"))

    def kept(self, clean: Callable[[str], str], *, thoughts: bool = True) -> dict[str, Any]:
        done: dict[str, list[str]] = {}
        said = [["thoughts", name, digest.hexdigest()] for name, digest in self._thoughts.items()] if thoughts else []
        for content in [*self._done, *said]:
            if content is not None:
                done.setdefault(_label(content, clean), []).append(content_key(content, clean)[-12:])
        more = {kind: count for kind, count in self._more.items() if count}
        return {**({"done": done} if done else {}), **({"more": more} if more else {})}


def changes(before: str | None, state: Mapping[str, Any]) -> Iterator[Content]:
    """Yield an action for each name of `turn.state` that the turn has set or removed."""
    known = json.loads(before) if before else {}
    for name, value in state.items():
        if name not in known or _differ(known[name], value):
            yield ["state", name, value]
    for name in known.keys() - state.keys():
        yield ["state", name, None, "removed"]


def _differ(known: Any, value: Any) -> bool:
    try:
        return bool(known != value)
    except Exception:  # too deep, or not a JSON value
        return True


def differences(recorded: Kept, replayed: Kept, *, missing: bool, added: bool) -> Iterator[str]:
    """Yield a line for each kind and recipient whose actions differ.

    `missing`, `added`: whether to report an action that is only in the record, or only in the replay.
    """
    old, new = recorded.get("done", {}), replayed.get("done", {})
    for label in sorted({*old, *new}):
        gone, appeared = (
            (Counter(a.get(label, ())) - Counter(b.get(label, ()))).total() for a, b in ((old, new), (new, old))
        )
        yield from _lines(label, gone, appeared, missing=missing, added=added)
    old, new = recorded.get("more", {}), replayed.get("more", {})
    for kind in sorted({*old, *new}):
        fewer = old.get(kind, 0) - new.get(kind, 0)
        yield from _lines(f"further {kind}", max(fewer, 0), max(-fewer, 0), missing=missing, added=added)


def _lines(label: str, gone: int, appeared: int, *, missing: bool, added: bool) -> Iterator[str]:
    different = min(gone, appeared)
    if different and (missing or added):
        yield f"different: {label}{_times(different)}"
    if missing and gone > different:
        yield f"missing: {label}{_times(gone - different)}"
    if added and appeared > different:
        yield f"added: {label}{_times(appeared - different)}"


def _times(count: int) -> str:
    return f" ({count} times)" if count > 1 else ""


def _label(content: Content, clean: Callable[[str], str]) -> str:
    kind, about = content[0], content[1]
    named = json.loads(clean(json.dumps(about)))[:_LABEL] if isinstance(about, str) else ""
    return f"{kind} {named}".rstrip()
