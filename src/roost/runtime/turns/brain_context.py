"""Brain context of one turn: read from the store, and written when the turn ends."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roost.core.brain_data.brain_context import ContextEntry, ContextKey, ContextWrite, Scope
from roost.errors import BrainFailed
from roost.runtime.context import RuntimeContext
from roost.runtime.turns.artifacts import TurnArtifacts
from roost.stores.sql.brain_data import brain_context


class TurnBrainContext:
    """Brain context of one turn; created on the first use."""

    def __init__(self, context: RuntimeContext, place: ContextKey, run_id: str) -> None:
        self._context = context
        self._place = place
        self._run_id = run_id
        self._app = ""
        self._items: list[str] = []
        self._seqs: list[int] = []
        self._values: dict[Scope, dict[str, str]] = {}
        self.name = f"{place.owner}#{place.lane}" if place.lane else place.owner

    @property
    def artifacts(self) -> TurnArtifacts:
        return TurnArtifacts(self._context, self._place)

    async def read(self, app: str, limit: int) -> tuple[list[ContextEntry], dict[Scope, dict[str, str]]]:
        self._app = app
        return await self._context.store.read(brain_context.read, self._place, app, limit)

    def add(self, item: str, seqs: Sequence[int] = (), said: Collection[str] = ()) -> None:
        self._items.append(self._context.redactor.clean_json(item, frozenset(said)))
        self._seqs += seqs

    def set(self, scope: Scope, name: str, value: str) -> None:
        value = self._context.redactor.clean_known_json(value)
        most = self._context.limits.state_chars
        if len(name) + len(value) > most:
            raise BrainFailed(f"{name!r:.80} has {len(value):,} characters, and {most:,} are allowed", kind="state")
        self._values.setdefault(scope, {})[name] = value

    def written(self, *, entry: bool = True) -> ContextWrite | None:
        """Return the changes to write; without `entry` only the values, for a lane without further turns."""
        if not self._items and not self._values:
            return None
        content = f"[{','.join(self._items)}]"
        context_entry = ContextEntry(self._run_id, content, tuple(self._seqs)) if entry and self._items else None
        return ContextWrite(self._place, self._app, context_entry, self._values)
