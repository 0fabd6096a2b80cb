"""The recollection of an agent that is awake: its memory as its turns have it, and what each of them changes."""

from __future__ import annotations

import json
from typing import Any

from roost.errors import BrainFailed
from roost.runtime.thinking import kept_state


class Recollection:
    """On the loop of its agent; `text` may be read anywhere."""

    def __init__(self, text: str | None, most: int) -> None:
        self.text = text
        self.edits = 0
        """How often a person has edited it."""
        self._most = most

    def changed(self, before: str | None, state: dict[str, Any]) -> tuple[str | None, BaseException | None]:
        """The memory with what a turn has changed in it, beside what others have changed since; None: nothing."""
        try:
            after = kept_state(state, self._most)
            if after == (before or "{}"):
                return None, None
            merged = after if self.text == before else kept_state(_merged(before, after, self.text), self._most)
        except BrainFailed as error:
            return None, error
        self.text = merged
        return merged, None

    def edited(self, text: str) -> None:
        """Turns under way add what they change, and what has ended before is overwritten."""
        self.text = text
        self.edits += 1


def _merged(before: str | None, after: str, now: str | None) -> dict[str, Any]:
    """What is there now, with what differs between before and after."""
    was, new, merged = json.loads(before or "{}"), json.loads(after), json.loads(now or "{}")
    for name in was.keys() - new.keys():
        merged.pop(name, None)
    merged |= {name: value for name, value in new.items() if name not in was or was[name] != value}
    return dict(merged)
