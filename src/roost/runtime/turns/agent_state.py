"""The recollection of an agent that is awake: its memory as its turns have it, and what each of them changes.

A turn that nobody has seen is given a copy. If another turn changes one of the names it changed, it runs again. A turn
of a talk cannot run again: it shares the memory instead, so that each of its reads gives the newest values, and what it
has changed is published as soon as another turn reads or changes it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from roost.core.envelopes.outcomes import MemoryWrite
from roost.core.memory.state_merge import conflicting, differing, merged, parsed, rebased, undone
from roost.errors import BrainFailed
from roost.ports import Host, Pending
from roost.runtime.turns.shared_state import SharedState, kept_state

log = logging.getLogger("roost.agent")

PATIENCE = 60.0
"""Seconds that the end of a turn waits for what it has published to be written."""


class Stale(Exception):
    """Another turn has changed a name that this one has changed too."""


class AgentState:
    """`text` may be read anywhere, and a shared state is used on the thread of its brain; the rest on the loop."""

    __slots__ = (
        "_got_out",
        "_host",
        "_lock",
        "_most",
        "_publish",
        "_put_in",
        "_shared",
        "_waiters",
        "edits",
        "text",
    )

    def __init__(self, host: Host, text: str | None, most: int, publish: Callable[[MemoryWrite], None]) -> None:
        self.text = text
        self.edits = 0
        """How often a person has edited it."""
        self._host = host
        self._most = most
        self._publish = publish
        self._lock = host.lock()
        self._shared: list[SharedState] = []
        self._put_in = self._got_out = 0
        """How many changes, of any turn, were handed over to be written, and how many of them are."""
        self._waiters: list[tuple[int, Pending[None]]] = []

    # --- turns that can run again ----------------------------------------------------------------

    def changed(
        self, before: str | None, state: dict[str, Any], *, again: bool = True
    ) -> tuple[str | None, str | None, BaseException | None]:
        """Take over what a turn has changed; the memory before and with it, or None if it has changed nothing.

        The error is Stale if others have changed the same. A turn that cannot run `again` is combined with them.
        """
        try:
            after = kept_state(state, self._most)
            if after == (before or "{}"):
                return None, None, None
            with self._lock:
                if self._shared:
                    self._publish_all(differing(before, after))
                knew = self.text
                if knew != before:
                    if again and conflicting(before, after, knew):
                        return None, None, Stale()
                    combine = merged if again else rebased
                    after = kept_state(combine(before, after, knew), self._most)
                self.text = after
        except BrainFailed as error:
            return None, None, error
        return knew, after, None

    # --- turns of talks --------------------------------------------------------------------------

    def share(self, envelope_id: str) -> SharedState:
        """`turn.state` for a turn of a talk, until it is ended or withdrawn."""
        with self._lock:
            state = SharedState(self.text, envelope_id, self._refresh)
            self._shared.append(state)
        return state

    def ended(self, shared: SharedState, state: object) -> tuple[str | None, str | None, BaseException | None]:
        """Take over what the turn has changed; the memory before and with it, if that is still to be written.

        `state` is what the turn has now: a brain may have replaced it.
        """
        try:
            with self._lock:
                self._unshare(shared)
                before = self.text
                after = self._combined(shared, kept_state(shared.local() if state is shared else state, self._most))
                if after is None:
                    return None, None, None
                self.text = after
                if self._put_in > self._got_out:  # in order with what others have changed
                    self._publish_change(shared, before, after)
                    return None, None, None
                return before, after, None
        except BrainFailed as error:
            self.withdraw(shared)
            return None, None, error

    def withdraw(self, shared: SharedState, kept: tuple[str | None, str] | None = None) -> None:
        """The turn has failed or was stopped: take back what it has published, as far as others have not built on it.

        `kept` is the memory before and after its end, if that was not written.
        """
        with self._lock:
            self._unshare(shared)
            if kept is not None:
                self.text = json.dumps(undone(*kept, self.text))
            self._take_back(shared.envelope_id, shared.published)
            shared.published = []

    def take_back(self, envelope_id: str, published: list[tuple[str, str]]) -> None:
        """The turn was lost after it had published these changes, and runs again."""
        with self._lock:
            self._take_back(envelope_id, published)

    def _unshare(self, shared: SharedState) -> None:
        self._shared = [one for one in self._shared if one is not shared]

    def _take_back(self, envelope_id: str, published: list[tuple[str, str]]) -> None:
        if not published:
            return
        knew, text = self.text, self.text
        for before, after in reversed(published):
            text = json.dumps(undone(before, after, text))
        self.text = text
        self._put(MemoryWrite(envelope_id, 0, knew, text or "{}", None))

    # --- sharing ---------------------------------------------------------------------------------

    def _refresh(self, reader: SharedState) -> None:
        """Before the turn reads: all that other talks have changed is published, and the newest value is taken over."""
        if len(self._shared) == 1 and reader.seen is self.text:
            return
        with self._lock:
            if not any(one is reader for one in self._shared):
                return  # its turn is over
            self._publish_all(None, reader)
            reader.recover()
            if (self.text or "{}") != reader.base:
                reader.take_over(self.text)
            else:
                reader.seen = self.text

    def _publish_all(self, names: set[str] | None, reader: SharedState | None = None) -> None:
        """Publish what turns of talks have changed: those that have changed one of these names, or all."""
        for one in self._shared:
            if one is reader or not one.may_differ:
                continue
            try:
                local = kept_state(one.local(), self._most)
                if names is not None and not names & differing(one.base, local):
                    continue
                before, after = self.text, self._combined(one, local)
            except BrainFailed:  # it fails for that when it ends
                continue
            if after is not None:
                self.text = after
                self._publish_change(one, before, after)
                one.published_as(local)

    def _combined(self, shared: SharedState, local: str) -> str | None:
        """Return the memory with what the turn has changed since it last read it; None: nothing."""
        if not (names := differing(shared.base, local)):
            return None
        if shared.base == (self.text or "{}"):
            return local
        blind = {name for name in names if not shared.has_read(name)}
        if lost := conflicting(shared.base, local, self.text) - blind:
            log.info("changes of turns are combined: %s", ", ".join(sorted(lost))[:200])
        return kept_state(rebased(shared.base, local, self.text, blind), self._most)

    def _publish_change(self, shared: SharedState, before: str | None, after: str) -> None:
        """Write it now, with a mark by which it can be taken back if the turn is lost."""
        was, now, names = parsed(before), parsed(after), differing(before, after)
        change = tuple(json.dumps({name: one[name] for name in names if name in one}) for one in (was, now))
        shared.published.append((change[0], change[1]))
        self._put(MemoryWrite(shared.envelope_id, -len(shared.published), before, after, json.dumps(change)))

    # --- writing ---------------------------------------------------------------------------------

    def _put(self, write: MemoryWrite) -> None:
        self._put_in += 1
        self._publish(write)

    def begun(self) -> None:
        """A change of a turn is on its way to the store, in order with those that are published."""
        with self._lock:
            self._put_in += 1

    def is_written(self) -> None:
        """The oldest change that is on its way is in the store, or was refused."""
        with self._lock:
            self._got_out += 1
            done = [bell for number, bell in self._waiters if number <= self._got_out]
            self._waiters = [one for one in self._waiters if one[0] > self._got_out]
        for bell in done:
            bell.set(None)

    async def written(self) -> None:
        """Return when all that was changed until now is in the store."""
        with self._lock:
            if self._put_in == self._got_out:
                return
            bell: Pending[None] = self._host.pending()
            self._waiters.append((self._put_in, bell))
        await bell.within(PATIENCE)

    def edited(self, text: str) -> None:
        """Turns under way add what they change, and what has ended before is overwritten."""
        with self._lock:
            self.text = text
            self.edits += 1
