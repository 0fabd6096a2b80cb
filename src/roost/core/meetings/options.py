"""Options of the call of a meeting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class MeetingOptions:
    """Options as the caller gives them, not yet checked. `deadline` and `turn_timeout` are in seconds."""

    required: Sequence[str] = ()
    optional: Sequence[str] = ()
    floor: str = "free"
    moderator: str | None = None
    game: str | None = None
    setting: Any = None
    deadline: float = 60.0
    open: bool = False
    max_words: int | None = None
    max_moves: int = 100
    turn_timeout: float = 300.0
    max_misses: int = 2
    priority: str = "normal"
