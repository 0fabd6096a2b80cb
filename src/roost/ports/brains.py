"""Brains: functions that answer a turn, and the registry that finds them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from roost.core.talks.side_channels import Channel
from roost.ports.host import Host
from roost.ports.profiles import Profile
from roost.ports.turns import Turn


@dataclass(frozen=True, slots=True)
class Chunk:
    """Chunk of a brain's output: of its answer (`final`), or of a side channel (`thinking`, `commentary` …)."""

    text: str
    channel: str = Channel.FINAL


AsyncBrain = Callable[[Turn], AsyncIterator[str | Chunk]]
BlockingBrain = Callable[[Any], Iterator[str | Chunk]]
"""Generator function that gets a `PlainTurn`; one that only reads it may be annotated with `Turn`."""
Brain = AsyncBrain | BlockingBrain


class Brains(Protocol):
    """Registry of profiles and their brains."""

    default: str
    is_chosen: bool
    """Whether the default profile was configured, or has what it needs; otherwise it is a fallback."""
    without_model: str | None
    """Why no local model is available, and what to do about it; None if one is."""

    def open(self, host: Host) -> None:
        """Give the brains their host, before the first call."""
        ...

    def close(self) -> None:
        """Release the resources of the brains, after all runs have ended."""
        ...

    def names(self) -> Sequence[Profile]: ...

    def profile(self, name: str) -> Profile:
        """Return a profile. Raises Invalid with the known names."""
        ...

    def has(self, name: str) -> bool:
        """Return whether a profile of this name exists."""
        ...

    def loaded(self, profile: Profile) -> Brain | None:
        """Return its brain if it is loaded."""
        ...

    def load(self, profile: Profile) -> Brain:
        """Load its brain; may take long. Raises BrainFailed if it cannot be loaded."""
        ...
