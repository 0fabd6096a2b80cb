"""Brains: what thinks about a turn, what it says, and where it is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from roost.core.notes import Channel
from roost.ports.host import Host
from roost.ports.profiles import Profile
from roost.ports.turns import Turn


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of what a brain says: of its answer (`final`), or beside it (`thinking`, `commentary` …)."""

    text: str
    channel: str = Channel.FINAL


AsyncBrain = Callable[[Turn], AsyncIterator[str | Chunk]]
BlockingBrain = Callable[[Turn], Iterator[str | Chunk]]
Brain = AsyncBrain | BlockingBrain


class Brains(Protocol):
    """Where a talk's profile is found, and the brain that belongs to it."""

    default: str
    is_chosen: bool
    """Whether somebody has set up the default profile, or given what it takes; else it is what there is."""
    without_model: str | None
    """Why no model on this machine can be talked with, and what to do about it; None: one can."""

    def open(self, host: Host) -> None:
        """Before anything is asked: give the brains what they run on."""
        ...

    def close(self) -> None:
        """When all runs are over: let go of what the brains hold."""
        ...

    def names(self) -> Sequence[Profile]: ...

    def profile(self, name: str) -> Profile:
        """Raises Invalid with the known names."""
        ...

    def has(self, name: str) -> bool:
        """Whether there is a profile of this name."""
        ...

    def loaded(self, profile: Profile) -> Brain | None:
        """Its brain, if it is at hand."""
        ...

    def load(self, profile: Profile) -> Brain:
        """Fetch its brain; may take long. Raises BrainFailed when it cannot be had."""
        ...
