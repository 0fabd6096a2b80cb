"""Brain context: records and files that a brain keeps for itself between turns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from roost.core.brain_data.artifacts import Artifact
from roost.core.brain_data.brain_context import ContextEntry, Scope


class Artifacts(Protocol):
    """Files that a brain saves for its talk or lane, or for the user. Written at once; used on the turn's loop."""

    async def save(self, app: str, scope: Scope, name: str, content: str, about: str) -> int:
        """Add a version and return its number, from 0 on. `about`: metadata, as JSON."""
        ...

    async def load(self, app: str, scope: Scope, name: str, version: int | None) -> Artifact | None:
        """Return a version, or the newest one."""
        ...

    async def names(self, app: str, scope: Scope) -> list[str]: ...

    async def versions(self, app: str, scope: Scope, name: str) -> list[Artifact]:
        """Return all versions, the oldest first, without their contents."""
        ...

    async def remove(self, app: str, scope: Scope, name: str) -> None:
        """Remove all versions."""
        ...


class BrainContext(Protocol):
    """Context that a brain keeps for one talk, or for one lane of an agent. Used on the turn's loop.

    Changes are written when the turn ends, in one transaction with its answer. A turn that will be repeated, or whose
    answer is withdrawn, writes nothing.
    """

    name: str
    """Unique name of the talk or lane, the same for all its turns."""

    @property
    def artifacts(self) -> Artifacts:
        """Return the files of the talk or lane."""
        ...

    async def read(self, app: str, limit: int) -> tuple[list[ContextEntry], dict[Scope, dict[str, str]]]:
        """Return the newest entries, in the order of their turns, and all values of the app, as JSON."""
        ...

    def add(self, item: str, seqs: Sequence[int] = (), said: Collection[str] = ()) -> None:
        """Add an item, as JSON, to the entry of this turn, with the numbers of the messages it covers.

        Secrets in it are redacted, except in texts that were `said`: those are in the talk too.
        """
        ...

    def set(self, scope: Scope, name: str, value: str) -> None:
        """Set a value, as JSON."""
        ...
