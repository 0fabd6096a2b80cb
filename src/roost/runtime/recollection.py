"""The recollection of an agent that is awake: its memory as its turns have it, and what each of them changes."""

from __future__ import annotations

from typing import Any

from roost.core.recall import merged
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
            if self.text != before:
                after = kept_state(merged(before, after, self.text), self._most)
        except BrainFailed as error:
            return None, error
        self.text = after
        return after, None

    def edited(self, text: str) -> None:
        """Turns under way add what they change, and what has ended before is overwritten."""
        self.text = text
        self.edits += 1
