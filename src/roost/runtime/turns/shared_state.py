"""`turn.state` for a turn of a talk with an agent: a dict that reads the newest values of the agent's state."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Container, ItemsView, Iterator, KeysView, ValuesView
from typing import Any

from roost.core.brain_data.state_merge import ABSENT, combined, parsed, put, same
from roost.errors import BrainFailed

Refresh = Callable[["SharedState"], None]


_FIXED = (str, int, float, bool, type(None))
"""Types of values that a brain cannot change in place."""


class _AllExcept:
    """All names except one."""

    __slots__ = ("_name",)

    def __init__(self, name: object) -> None:
        self._name = name

    def __contains__(self, name: object) -> bool:
        return name != self._name


class SharedState(dict[str, Any]):
    """`turn.state` that is shared with other turns: each read of a name gets the newest value.

    Values that this turn has changed stay. Names that were read before keep their values until they are read again: the
    brain may be computing new values from them. Used on the thread of the brain, with the lock of `AgentState` where
    others access it.
    """

    def __init__(self, text: str | None, envelope_id: str = "", refresh: Refresh | None = None) -> None:
        super().__init__(parsed(text))
        self.base = text or "{}"
        """State of this turn without its changes since the last publication or read."""
        self.seen: str | None = text
        self.envelope_id = envelope_id
        self.published: list[tuple[str, str]] = []
        """Published changes: the values of the changed names before and after, as JSON."""
        self.taken_over: list[tuple[int, dict[str, Any], list[str]]] = []
        """For a replay: number of the read, the new values, and the removed names."""
        self._refresh = refresh
        self._reads = 0
        self._read: set[object] = set()
        self._read_all = False
        self._written = self._exposed = False
        """True if the brain has set or removed a name since the last publication, or holds a mutable value."""
        self._replaced: list[tuple[str, dict[str, Any], str]] = []
        """Mappings that the brain may hold and that were replaced in the state: name, mapping, JSON at that time."""
        self._kept: Container[object] = ()
        """Names that must not change in the current read."""

    # --- used by AgentState ------------------------------------------------------------------------

    def local(self) -> dict[str, Any]:
        """Return the values as this turn has them."""
        if self._replaced:
            self.recover()
        return {name: dict.__getitem__(self, name) for name in list(dict.keys(self))}

    def recover(self) -> None:
        """Apply changes that the brain made in a mapping that was replaced in the state."""
        for position, (name, mapping, known) in enumerate(self._replaced):
            if (now := _as_json(mapping, known)) != known:
                self._replaced[position] = (name, mapping, now)
                old, own, current = json.loads(known), json.loads(now), dict.get(self, name, ABSENT)
                values: dict[str, Any] = {}
                put(values, name, combined(old, own, current, own))
                self._apply(copy.deepcopy(values), [] if values else [name])

    @property
    def may_differ(self) -> bool:
        """Return True if the turn may have changed something; a full comparison is slow if many turns share a state."""
        return self._written or self._exposed

    def has_read(self, name: str) -> bool:
        """Return True if the turn may have computed a new value from the old one."""
        return self._read_all or name in self._read

    def take_over(self, text: str | None) -> None:
        """Apply the newest values; values that this turn has changed too are combined."""
        old_values, new_values, local = parsed(self.base), parsed(text), self.local()
        base = dict(new_values)
        values: dict[str, Any] = {}
        gone: list[str] = []
        for name in old_values.keys() | new_values.keys():
            old, new, own = old_values.get(name, ABSENT), new_values.get(name, ABSENT), local.get(name, ABSENT)
            if same(old, new):
                continue
            if name in self._kept:
                put(base, name, old)
                continue
            value = self._newest(name, old, own, new)
            if value is ABSENT:
                gone.append(name)
            elif value is not own:
                values[name] = value
        self._apply(copy.deepcopy(values), gone)
        is_newest = same(base, new_values)
        self.base = (text or "{}") if is_newest else json.dumps(base)
        self.seen = text if is_newest else None
        if values or gone:
            self.taken_over.append((self._reads, copy.deepcopy(values), gone))

    def _newest(self, name: str, old: Any, own: Any, new: Any) -> Any:
        try:
            return own if not same(old, own) and not self.has_read(name) else combined(old, own, new, own)
        except (TypeError, ValueError):  # not a JSON value: the turn fails with this error when it ends
            return own

    def mark_published(self, local: str) -> None:
        """Record that the changes of this turn are published."""
        self.base, self.seen, self._written = local, None, False

    def _apply(self, values: dict[str, Any], gone: list[str]) -> None:
        for name, value in values.items():
            own = dict.get(self, name)
            if type(own) is list and type(value) is list:  # the brain may hold the list and append to it later
                own[:] = value
                continue
            if type(own) is dict:  # not changed in place: the brain may be iterating over it
                self._replaced.append((name, own, _as_json(own)))
            dict.__setitem__(self, name, value)
        for name in gone:
            dict.pop(self, name, None)

    # --- used by the brain ---------------------------------------------------------------------

    def _before_read(self, name: object = None) -> None:
        self._reads += 1
        self._kept = () if name is None else _AllExcept(name) if self._read_all else self._read - {name}
        if name is None:
            self._read_all = True
        else:
            self._read.add(name)
        if self._replaced:
            self.seen = None  # check the replaced mappings for changes
        if self._refresh is not None:
            self._refresh(self)

    def _expose(self, value: Any) -> Any:
        """Return a value to the brain, which may change it in place."""
        self._exposed = self._exposed or not isinstance(value, _FIXED)
        return value

    def __getitem__(self, name: str) -> Any:
        self._before_read(name)
        return self._expose(super().__getitem__(name))

    def get(self, name: str, default: Any = None) -> Any:
        self._before_read(name)
        return self._expose(super().get(name, default))

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        self._expose(value)
        self._written = True  # set last: earlier changes may be published meanwhile

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
        self._before_read(name)
        return super().__contains__(name)

    def setdefault(self, name: str, default: Any = None) -> Any:
        self._before_read(name)
        value = self._expose(super().setdefault(name, default))
        self._written = True
        return value

    def pop(self, name: str, *default: Any) -> Any:
        self._before_read(name)
        value = super().pop(name, *default)
        self._written = True
        return value

    def popitem(self) -> tuple[str, Any]:
        self._before_read()
        item = super().popitem()
        self._written = True
        return item

    def __iter__(self) -> Iterator[str]:
        self._before_read()
        return iter(list(super().__iter__()))

    def __len__(self) -> int:
        self._before_read()
        return super().__len__()

    def keys(self) -> KeysView[str]:  # type: ignore[override]
        self._before_read()
        return super().keys()

    def values(self) -> ValuesView[Any]:  # type: ignore[override]
        self._before_read()
        self._exposed = True
        return super().values()

    def items(self) -> ItemsView[str, Any]:  # type: ignore[override]
        self._before_read()
        self._exposed = True
        return super().items()

    def copy(self) -> dict[str, Any]:
        self._before_read()
        self._exposed = True
        return self.local()

    def __eq__(self, other: object) -> bool:
        self._before_read()
        return super().__eq__(other)

    __hash__ = None

    def __repr__(self) -> str:
        self._before_read()
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
    except (TypeError, ValueError, RecursionError):  # the turn fails with this error when it ends
        return otherwise


def unread(state: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a turn's state without reading changes of others."""
    return state.local() if isinstance(state, SharedState) else state


class ReplayedState(SharedState):
    """State for a replay: each read returns the recorded values."""

    def __init__(self, text: str | None, taken_over: list[Any]) -> None:
        self._left = list(taken_over)
        super().__init__(text)

    def _before_read(self, name: object = None) -> None:
        self._reads += 1
        while self._left and self._left[0][0] <= self._reads:
            _, values, gone = self._left.pop(0)
            self._apply(copy.deepcopy(values), gone)


def state_json(state: object, most: int) -> str:
    """Return `turn.state` as JSON. Raises BrainFailed if it is not a JSON value, or too long."""
    try:
        text = json.dumps(state, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise BrainFailed(f"turn.state must be a JSON value: {error}", kind="state") from error
    if len(text) > most:
        raise BrainFailed(f"turn.state has {len(text):,} characters, and {most:,} are allowed", kind="state")
    return text
