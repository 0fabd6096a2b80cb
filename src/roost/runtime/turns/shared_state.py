"""`turn.state` for a turn of a talk with an agent: a dict that reads the newest values of the agent's memory."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Container, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from roost.core.memory.state_merge import ABSENT, combined, parsed, put, same
from roost.errors import BrainFailed

Refresh = Callable[["SharedState"], None]


_FIXED = (str, int, float, bool, type(None))
"""Types of values that a brain cannot change where they are."""


class _AllBut:
    """All names but one."""

    __slots__ = ("_name",)

    def __init__(self, name: object) -> None:
        self._name = name

    def __contains__(self, name: object) -> bool:
        return name != self._name


class SharedState(dict[str, Any]):
    """Each read of a name takes over what others have made of it since; what this turn has changed stays as it is.

    Names that it has read before stay as they were then, until it reads them again: it may be making new values of the
    old ones. Used on the thread of the brain, with the lock of the recollection where others look at it.
    """

    def __init__(self, text: str | None, envelope_id: str = "", refresh: Refresh | None = None) -> None:
        super().__init__(parsed(text))
        self.base = text or "{}"
        """The memory as this turn has it, without what it has changed since it was last published or taken over."""
        self.seen: str | None = text
        self.envelope_id = envelope_id
        self.published: list[tuple[str, str]] = []
        """Changes that are published: the values of the names before and after, as JSON."""
        self.taken_over: list[tuple[int, dict[str, Any], list[str]]] = []
        """At which of its reads it was given which values, and which names were gone; for a replay."""
        self._refresh = refresh
        self._reads = 0
        self._read: set[object] = set()
        self._read_all = False
        self._written = self._exposed = False
        """True if the brain has set or removed something since that was published, or holds a value it can change."""
        self._replaced: list[tuple[str, dict[str, Any], str]] = []
        """Mappings that the brain may hold and that the state has no more: the name, the mapping, its JSON then."""
        self._kept: Container[object] = ()
        """Names that stay as they are in the read under way."""

    # --- the side of the recollection ------------------------------------------------------------

    def local(self) -> dict[str, Any]:
        """Return the values as this turn has them, changed in place or not."""
        if self._replaced:
            self.recover()
        return {name: dict.__getitem__(self, name) for name in list(dict.keys(self))}

    def recover(self) -> None:
        """Take over what the brain has changed in a mapping that was part of the state when it read it."""
        for place, (name, mapping, known) in enumerate(self._replaced):
            if (now := _as_json(mapping, known)) != known:
                self._replaced[place] = (name, mapping, now)
                old, mine, current = json.loads(known), json.loads(now), dict.get(self, name, ABSENT)
                values: dict[str, Any] = {}
                put(values, name, combined(old, mine, current, mine))
                self._apply(copy.deepcopy(values), [] if values else [name])

    @property
    def may_differ(self) -> bool:
        """True if the turn may have changed something; comparing all of it takes long if many turns share a memory."""
        return self._written or self._exposed

    def has_read(self, name: str) -> bool:
        """Return True if the turn may have made a new value of it from the old one."""
        return self._read_all or name in self._read

    def take_over(self, text: str | None) -> None:
        """Take the newest values; those that this turn has changed as well are combined with its own."""
        was, now, local = parsed(self.base), parsed(text), self.local()
        base = dict(now)
        values: dict[str, Any] = {}
        gone: list[str] = []
        for name in was.keys() | now.keys():
            old, new, mine = was.get(name, ABSENT), now.get(name, ABSENT), local.get(name, ABSENT)
            if same(old, new):
                continue
            if name in self._kept:
                put(base, name, old)
                continue
            value = self._newest(name, old, mine, new)
            if value is ABSENT:
                gone.append(name)
            elif value is not mine:
                values[name] = value
        self._apply(copy.deepcopy(values), gone)
        is_newest = same(base, now)
        self.base = (text or "{}") if is_newest else json.dumps(base)
        self.seen = text if is_newest else None
        if values or gone:
            self.taken_over.append((self._reads, copy.deepcopy(values), gone))

    def _newest(self, name: str, old: Any, mine: Any, new: Any) -> Any:
        try:
            return mine if not same(old, mine) and not self.has_read(name) else combined(old, mine, new, mine)
        except (TypeError, ValueError):  # it is no JSON: the turn fails for that when it ends
            return mine

    def published_as(self, local: str) -> None:
        """Note that the changes of this turn are published."""
        self.base, self.seen, self._written = local, None, False

    def _apply(self, values: dict[str, Any], gone: list[str]) -> None:
        for name, value in values.items():
            mine = dict.get(self, name)
            if type(mine) is list and type(value) is list:  # the brain may hold it, and append to it later
                mine[:] = value
                continue
            if type(mine) is dict:  # it cannot be changed where it is: the brain may be in the middle of reading it
                self._replaced.append((name, mine, _as_json(mine)))
            dict.__setitem__(self, name, value)
        for name in gone:
            dict.pop(self, name, None)

    # --- the side of the brain -------------------------------------------------------------------

    def _look(self, name: object = None) -> None:
        self._reads += 1
        self._kept = () if name is None else _AllBut(name) if self._read_all else self._read - {name}
        if name is None:
            self._read_all = True
        else:
            self._read.add(name)
        if self._replaced:
            self.seen = None  # what was changed there is looked for
        if self._refresh is not None:
            self._refresh(self)

    def _expose(self, value: Any) -> Any:
        """Return a value to the brain, which may change it where it is."""
        self._exposed = self._exposed or not isinstance(value, _FIXED)
        return value

    def __getitem__(self, name: str) -> Any:
        self._look(name)
        return self._expose(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        self._look(name)
        return self._expose(super().get(name, default))

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._expose(value)
        self._written = True  # afterwards, since what came before may be published meanwhile

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._written = True

    def update(self, *args: Any, **values: Any) -> None:
        super().update(*args, **values)
        self._written = self._exposed = True

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def clear(self) -> None:
        super().clear()
        self._written = True

    def __contains__(self, name: object) -> bool:
        self._look(name)
        return super().__contains__(name)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self._look(name)
        value = self._expose(super().setdefault(name, default))
        self._written = True
        return value

    def pop(self, name: str, *default: Any) -> Any:
        self._look(name)
        value = super().pop(name, *default)
        self._written = True
        return value

    def popitem(self) -> tuple[str, Any]:
        self._look()
        item = super().popitem()
        self._written = True
        return item

    def __iter__(self) -> Iterator[str]:
        self._look()
        return iter(list(super().__iter__()))

    def __len__(self) -> int:
        self._look()
        return super().__len__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        self._look()
        return super().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._look()
        self._exposed = True
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._look()
        self._exposed = True
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._look()
        self._exposed = True
        return self.local()

    def __eq__(self, other: object) -> bool:
        self._look()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        self._look()
        return super().__repr__()

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return copy.deepcopy(self.copy(), memo)

    def __reduce__(self) -> Any:
        return dict, (self.copy(),)


def _as_json(mapping: dict[str, Any], otherwise: str = "{}") -> str:
    try:
        return json.dumps(mapping)
    except (TypeError, ValueError, RecursionError):  # the turn fails for that when it ends
        return otherwise


def unread(state: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a turn's state as it has them, without taking over what others have changed."""
    return state.local() if isinstance(state, SharedState) else state


class ReplayedState(SharedState):
    """Gives a replay at each read what the turn was given then."""

    def __init__(self, text: str | None, taken_over: list[Any]) -> None:
        self._left = list(taken_over)
        super().__init__(text)

    def _look(self, name: object = None) -> None:
        self._reads += 1
        while self._left and self._left[0][0] <= self._reads:
            _, values, gone = self._left.pop(0)
            self._apply(copy.deepcopy(values), gone)


def kept_state(state: object, most: int) -> str:
    """`turn.state` as it is kept. Raises BrainFailed for what cannot be."""
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BrainFailed(f"turn.state must be what JSON can hold: {error}", kind="state") from error
    if len(text) > most:
        raise BrainFailed(f"turn.state has {len(text):,} characters, and {most:,} may be kept", kind="state")
    return text
