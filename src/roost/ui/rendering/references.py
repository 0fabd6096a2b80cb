"""Link reference definitions, which may stand after the links that use them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Definition = dict[str, Any]
Definitions = dict[str, Definition]
"""Addresses and titles as markdown-it keeps them, by label."""

_MOST = 200
"""Definitions of an answer; those after them are ignored."""
_LONGEST = 32_000
"""Characters of parts whose labels may be defined after them: no definition changes more than that."""


class Lookups(dict[str, Any]):
    """Definitions that remember what was found for each label."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(definitions)
        self.seen: dict[str, Definition | None] = {}

    def get(self, label: str, default: Any = None) -> Any:
        self.seen[label] = super().get(label)
        return super().get(label, default)


@dataclass(eq=False)
class User:
    """A part of an answer that uses labels: its source, its first block, and what it has seen for each label."""

    source: str
    first_block: int
    formulas: int
    """Characters of formulas that it may convert."""
    formulas_used: int = 0
    seen: dict[str, Definition | None] = field(default_factory=dict)


@dataclass
class References:
    """The definitions of the closed part of an answer and of its open end, and the parts that wait for definitions."""

    closed: Definitions = field(default_factory=dict)
    current: Definitions = field(default_factory=dict)
    _users: dict[str, dict[int, User]] = field(default_factory=dict)
    _used: int = 0
    _fresh: list[User] = field(default_factory=list)

    def define(self, definitions: Definitions) -> None:
        """Add the definitions of a closed part. The first definition of a label counts."""
        _add(self.closed, definitions)

    def use(self, user: User) -> None:
        """Register a closed part, unless too many parts use labels for a definition to change them all."""
        if not user.seen or self._used + len(user.source) > _LONGEST:
            return
        self._used += len(user.source)
        self._fresh.append(user)
        self.index(user)

    def define_at_end(self, definitions: Definitions) -> Iterator[User]:
        """Set the definitions of the open end, and yield the parts that have seen other definitions than these."""
        before, self.current = self.current, dict(self.closed)
        _add(self.current, definitions)
        changed = {label for label in {**before, **self.current} if before.get(label) != self.current.get(label)}
        users = [*self._fresh, *(user for label in changed for user in self._users.get(label, {}).values())]
        self._fresh = []
        yield from {user.first_block: user for user in users if self._is_outdated(user)}.values()

    def index(self, user: User) -> None:
        """Note which labels a part has looked up."""
        for label in user.seen:
            self._users.setdefault(label, {})[user.first_block] = user

    def _is_outdated(self, user: User) -> bool:
        return any(self.current.get(label) != definition for label, definition in user.seen.items())


def _add(known: Definitions, definitions: Definitions) -> None:
    for label, found in definitions.items():
        if label not in known and len(known) < _MOST:
            known[label] = {"href": found["href"], "title": found["title"]}
