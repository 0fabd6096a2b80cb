"""How the program itself is doing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Health:
    """How many workers are there and should be; `problem` is one sentence for people, or None."""

    workers: int
    expected: int
    restarts: int
    problem: str | None
