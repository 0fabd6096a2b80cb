"""Artifacts of one turn: written at once, since a recorded tool call is not made again."""

from __future__ import annotations

from roost.core.brain_data.artifacts import MOST_CHARS, Artifact
from roost.core.brain_data.brain_context import ContextKey, Scope
from roost.core.values import checks
from roost.errors import LimitReached
from roost.runtime.context import RuntimeContext
from roost.stores.sql.brain_data import artifacts


class TurnArtifacts:
    """Files of a talk or lane, or of its user. In a replay nothing is written."""

    def __init__(self, context: RuntimeContext, place: ContextKey, *, writes: bool = True) -> None:
        self._context = context
        self._place = place
        self._writes = writes

    async def save(self, app: str, scope: Scope, name: str, content: str, about: str) -> int:
        checks.text(name, "the name of an artifact", most=checks.NAME_LENGTH * 4)
        if len(content) > MOST_CHARS:
            raise LimitReached(
                f"the artifact {name!r:.80} has {len(content):,} characters, and {MOST_CHARS:,} are allowed"
            )
        owner, lane = self._place.of(scope, app)
        if not self._writes:
            return len(await self.versions(app, scope, name))
        host = self._context.host
        return await self._context.store.write(
            artifacts.save, host.new_id("artifact"), owner, lane, name, content, about, host.clock.now(), key=owner
        )

    async def load(self, app: str, scope: Scope, name: str, version: int | None) -> Artifact | None:
        return await self._context.store.read(artifacts.load, *self._place.of(scope, app), name, version)

    async def names(self, app: str, scope: Scope) -> list[str]:
        return await self._context.store.read(artifacts.names, *self._place.of(scope, app))

    async def versions(self, app: str, scope: Scope, name: str) -> list[Artifact]:
        return await self._context.store.read(artifacts.versions, *self._place.of(scope, app), name)

    async def remove(self, app: str, scope: Scope, name: str) -> None:
        if self._writes:
            owner, lane = self._place.of(scope, app)
            await self._context.store.write(artifacts.remove, owner, lane, name, key=owner)
