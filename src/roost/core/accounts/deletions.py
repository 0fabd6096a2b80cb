"""Progress of the deletion of a user."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Deletion:
    """Deletion of a user. `step`: what is deleted now. `removed`: things that are deleted, since the last start."""

    user_id: str
    step: str = ""
    removed: int = 0
    is_over: bool = False
