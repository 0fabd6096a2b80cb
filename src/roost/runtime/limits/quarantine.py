"""Quarantine: turns that may have crashed the process run one at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from roost.ports import Host, Pending

POLL_INTERVAL = 0.25
"""Seconds between two checks whether the caller still wants to enter."""


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """One call of `enter`: the same turn may enter again before an earlier call has ended."""

    key: str
    admitted: Pending[None]


class Quarantine:
    """Admit one turn at a time, in order of arrival. A key names what waits or runs; any thread may call."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._lock = host.lock()
        self._inside: _Entry | None = None
        self._waiting: deque[_Entry] = deque()

    async def enter(self, key: str, wanted: Callable[[], object]) -> bool:
        """Wait to be admitted; return False if it is not `wanted` any more. An admitted caller must `leave`."""
        entry = self._admit(key)
        entered = False
        try:
            while not await entry.admitted.within(POLL_INTERVAL):
                if not wanted():
                    break
            entered = bool(wanted()) and entry.admitted.done
        finally:
            if not entered:  # also after a cancellation
                self._remove(lambda other: other is entry)
        return entered

    def leave(self, key: str) -> None:
        """Admit the next one; nothing happens if the key is neither inside nor waiting."""
        self._remove(lambda entry: entry.key == key)

    def _remove(self, leaves: Callable[[_Entry], bool]) -> None:
        following: _Entry | None = None
        with self._lock:
            self._waiting = deque(entry for entry in self._waiting if not leaves(entry))
            if self._inside is not None and leaves(self._inside):
                self._inside = following = self._waiting.popleft() if self._waiting else None
        if following is not None:
            following.admitted.set(None)

    @property
    def count(self) -> int:
        """Return the number of turns that run in quarantine or wait for it."""
        return len(self._waiting) + (self._inside is not None)

    def _admit(self, key: str) -> _Entry:
        entry = _Entry(key, self._host.pending())
        with self._lock:
            is_free = self._inside is None
            if is_free:
                self._inside = entry
            else:
                self._waiting.append(entry)
        if is_free:
            entry.admitted.set(None)
        return entry
