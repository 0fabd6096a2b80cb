"""Brains: functions that answer a turn, and the registry that finds them."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, Protocol

from roost.core.talks.side_channels import Channel
from roost.core.values.secrets import Redactor
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


def is_blocking(brain: Brain) -> bool:
    """Return True for a plain generator function, which runs on its own thread."""
    plain = brain.__func__ if type(brain) is MethodType else brain
    if type(plain) is FunctionType:
        return bool(plain.__code__.co_flags & inspect.CO_GENERATOR)
    call = getattr(brain, "__call__", brain)  # noqa: B004 — an object's own generator method
    return inspect.isgeneratorfunction(brain) or inspect.isgeneratorfunction(call)


class Brains(Protocol):
    """Registry of profiles and their brains."""

    default: str
    is_chosen: bool
    """True if the default profile was configured, or has what it needs; otherwise it is a fallback."""

    @property
    def without_model(self) -> str | None:
        """Return why no local model is available, with the next step; None if one is."""
        ...

    def open(self, host: Host, redactor: Redactor) -> None:
        """Give the brains their host, before the first call. `redactor` learns the secrets that they add."""
        ...

    def close(self) -> None:
        """Release the resources of the brains, after all runs have ended."""
        ...

    def names(self) -> Sequence[Profile]: ...

    def add(self, profile: Profile) -> Profile:
        """Add a profile while Roost runs; return the existing one if there is one of this name.

        It becomes the default if none was chosen.
        """
        ...

    def profile(self, name: str) -> Profile:
        """Return a profile. Raises Invalid with the known names."""
        ...

    def has(self, name: str) -> bool:
        """Return whether a profile of this name exists."""
        ...

    def loaded(self, profile: Profile) -> Brain | None:
        """Return the brain of the profile, if it is loaded."""
        ...

    def load(self, profile: Profile) -> Brain:
        """Load the brain of the profile; may take long. Raises BrainFailed if it cannot be loaded."""
        ...
