"""`turn.state` of an awake agent, as its turns see it, and the changes of each turn.

A turn without readers gets a copy. If another turn changes a name that it has changed, it runs again. A turn of a talk
cannot run again: it shares the state, so that each read returns the newest value, and its changes are published as soon
as another turn reads or changes them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

from roost.core.brain_data.state_merge import conflicting, differing, merged, parsed, rebased, undone
from roost.core.envelopes.outcomes import StateWrite
from roost.errors import BrainFailed
from roost.ports import Host, Pending
from roost.runtime.turns.shared_state import SharedState, state_json

log = logging.getLogger("roost.agent")

WRITE_TIMEOUT = 60.0
"""Seconds that the end of a turn waits for its published changes to be written."""


class Stale(Exception):
    """Raised when another turn has changed a name that this turn has changed too."""


class AgentState:
    """State of one agent.

    Any thread may read `text`; a shared state is used on the thread of its brain, the rest on the loop.
    """

    __slots__ = (
        "_finished",
        "_host",
        "_lock",
        "_most",
        "_publish",
        "_queued",
        "_shared",
        "_waiters",
        "edits",
        "text",
    )

    def __init__(self, host: Host, text: str | None, most: int, publish: Callable[[StateWrite], None]) -> None:
        self.text = text
        self.edits = 0
        """Number of edits by a person."""
        self._host = host
        self._most = most
        self._publish = publish
        self._lock = host.lock()
        self._shared: list[SharedState] = []
        self._queued = self._finished = 0
        """Numbers of queued and of finished writes."""
        self._waiters: list[tuple[int, Pending[None]]] = []

    # --- turns that can run again ----------------------------------------------------------------

    def changed(
        self, before: str | None, state: dict[str, Any], *, again: bool = True
    ) -> tuple[str | None, str | None, BaseException | None]:
        """Apply the changes of a turn; return the state before and after, or None if nothing was changed.

        The error is Stale if others have changed the same names. If the turn cannot run `again`, the changes are
        combined.
        """
        try:
            after = state_json(state, self._most)
            if after == (before or "{}"):
                return None, None, None
            with self._lock:
                if self._shared:
                    self._publish_all(differing(before, after))
                current = self.text
                if current != before:
                    if again and conflicting(before, after, current):
                        return None, None, Stale()
                    combine = merged if again else rebased
                    after = state_json(combine(before, after, current), self._most)
                self.text = after
        except BrainFailed as error:
            return None, None, error
        return current, after, None

    # --- turns of talks --------------------------------------------------------------------------

    def share(self, envelope_id: str) -> SharedState:
        """Return `turn.state` for a turn of a talk, until it is ended or withdrawn."""
        with self._lock:
            state = SharedState(self.text, envelope_id, self._refresh)
            self._shared.append(state)
        return state

    def ended(self, shared: SharedState, state: object) -> tuple[str | None, str | None, BaseException | None]:
        """Apply the changes of a turn; return the state before and after, if it is still to be written.

        `state` is the present `turn.state`: a brain may have replaced it.
        """
        try:
            with self._lock:
                self._unshare(shared)
                before = self.text
                after = self._combined(shared, state_json(shared.local() if state is shared else state, self._most))
                if after is None:
                    return None, None, None
                self.text = after
                if self._queued > self._finished:  # keeps the order with writes of others
                    self._publish_change(shared, before, after)
                    return None, None, None
                return before, after, None
        except BrainFailed as error:
            self.withdraw(shared)
            return None, None, error

    def withdraw(self, shared: SharedState, kept: tuple[str | None, str] | None = None) -> None:
        """Revert the published changes of a failed or stopped turn, except where others build on them.

        `kept` is the state before and after its end, if that was not written.
        """
        with self._lock:
            self._unshare(shared)
            if kept is not None:
                self.text = json.dumps(undone(*kept, self.text))
            self._revert(shared.envelope_id, shared.published)
            shared.published = []

    def revert(self, envelope_id: str, published: list[tuple[str, str]]) -> None:
        """Revert the published changes of a turn that was lost and runs again."""
        with self._lock:
            self._revert(envelope_id, published)

    def _unshare(self, shared: SharedState) -> None:
        self._shared = [other for other in self._shared if other is not shared]

    def _revert(self, envelope_id: str, published: list[tuple[str, str]]) -> None:
        if not published:
            return
        current, text = self.text, self.text
        for before, after in reversed(published):
            text = json.dumps(undone(before, after, text))
        self.text = text
        self._put(StateWrite(envelope_id, 0, current, text or "{}", None))

    # --- sharing ---------------------------------------------------------------------------------

    def _refresh(self, reader: SharedState) -> None:
        """Publish the changes of other talks before the turn reads, and apply the newest values."""
        if len(self._shared) == 1 and reader.seen is self.text:
            return
        with self._lock:
            if not any(shared is reader for shared in self._shared):
                return  # the turn is over
            self._publish_all(None, reader)
            reader.recover()
            if (self.text or "{}") != reader.base:
                reader.take_over(self.text)
            else:
                reader.seen = self.text

    def _publish_all(self, names: set[str] | None, reader: SharedState | None = None) -> None:
        """Publish changes of turns of talks: of those that changed one of these names, or of all."""
        for shared in self._shared:
            if shared is reader or not shared.may_differ:
                continue
            try:
                local = state_json(shared.local(), self._most)
                if names is not None and not names & differing(shared.base, local):
                    continue
                before, after = self.text, self._combined(shared, local)
            except BrainFailed:  # the turn fails with this error when it ends
                continue
            if after is not None:
                self.text = after
                self._publish_change(shared, before, after)
                shared.mark_published(local)

    def _combined(self, shared: SharedState, local: str) -> str | None:
        """Return the state with the changes of the turn since its last read; None if there are none."""
        if not (names := differing(shared.base, local)):
            return None
        if shared.base == (self.text or "{}"):
            return local
        blind = {name for name in names if not shared.has_read(name)}
        if lost := conflicting(shared.base, local, self.text) - blind:
            log.info("concurrent changes of turn.state were combined; names: %s", ", ".join(sorted(lost))[:200])
        return state_json(rebased(shared.base, local, self.text, blind), self._most)

    def _publish_change(self, shared: SharedState, before: str | None, after: str) -> None:
        """Write a change now, with a mark to revert it if the turn is lost."""
        old, now, names = parsed(before), parsed(after), differing(before, after)
        change = tuple(json.dumps({name: values[name] for name in names if name in values}) for values in (old, now))
        shared.published.append((change[0], change[1]))
        self._put(StateWrite(shared.envelope_id, -len(shared.published), before, after, json.dumps(change)))

    # --- writing ---------------------------------------------------------------------------------

    def _put(self, write: StateWrite) -> None:
        self._queued += 1
        self._publish(write)

    def write_queued(self) -> None:
        """Count a queued write of a turn's end, in order with the published changes."""
        with self._lock:
            self._queued += 1

    def write_finished(self) -> None:
        """Count a finished write, committed or refused."""
        with self._lock:
            self._finished += 1
            done = [waiter for number, waiter in self._waiters if number <= self._finished]
            self._waiters = [waiting for waiting in self._waiters if waiting[0] > self._finished]
        for waiter in done:
            waiter.set(None)

    async def wait_until_written(self) -> None:
        """Wait until all changes so far are written."""
        with self._lock:
            if self._queued == self._finished:
                return
            waiter: Pending[None] = self._host.pending()
            self._waiters.append((self._queued, waiter))
        await waiter.within(WRITE_TIMEOUT)

    def edited(self, text: str) -> None:
        """Replace the state after an edit. Running turns add their changes to it."""
        with self._lock:
            self.text = text
            self.edits += 1
