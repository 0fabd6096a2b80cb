"""Artifacts: files that a brain saves beside a talk or an agent's lane, or for a user."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CHARS = 32 * 1024 * 1024
"""Characters of one stored version. Encoded binary data has a third more characters than bytes."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """One version of a file."""

    name: str
    version: int
    content: str
    """Text in a format of the brain, such as JSON; empty in a list of versions."""
    about: str
    """Metadata, as JSON."""
    created: float
