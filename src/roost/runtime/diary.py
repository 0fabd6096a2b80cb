"""The diary of one turn: read from the store, and written with the turn's end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from roost.core.diary import Entry, Place, Scope, Written
from roost.errors import BrainFailed
from roost.runtime.shop import Shop


class Diary:
    """Made when a brain first asks for it; most never do."""

    def __init__(self, shop: Shop, place: Place, run_id: str) -> None:
        self._shop = shop
        self._place = place
        self._run_id = run_id
        self._app = ""
        self._items: list[str] = []
        self._seqs: list[int] = []
        self._values: dict[Scope, dict[str, str]] = {}
        self.name = f"{place.owner}#{place.lane}" if place.lane else place.owner

    async def read(self, app: str, limit: int) -> tuple[list[Entry], dict[Scope, dict[str, str]]]:
        self._app = app
        return await self._shop.store.read(self._shop.statements.diary.read, self._place, app, limit)

    def add(self, item: str, seqs: Sequence[int] = (), said: Collection[str] = ()) -> None:
        self._items.append(self._shop.redactor.clean_json(item, frozenset(said)))
        self._seqs += seqs

    def set(self, scope: Scope, name: str, value: str) -> None:
        most = self._shop.limits.memory_chars
        if len(name) + len(value) > most:
            raise BrainFailed(f"{name!r:.80} has {len(value):,} characters, and {most:,} may be kept", kind="state")
        self._values.setdefault(scope, {})[name] = value

    def written(self, *, entry: bool = True) -> Written | None:
        """What is to be written; without `entry` the values alone, for a lane that no other turn will come to."""
        if not self._items and not self._values:
            return None
        content = f"[{','.join(self._items)}]"
        made = Entry(self._run_id, content, tuple(self._seqs)) if entry and self._items else None
        return Written(self._place, self._app, made, self._values)
