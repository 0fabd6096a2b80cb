"""Delivery of meeting posts into the logs of the participants, without a brain.

One write is in flight, and later posts are batched behind it. After its commit the participants get their turns. While
others speak, a turn waits for a quiet moment.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Any

from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.lanes import meeting_of
from roost.core.meetings.effects import MeetingChange
from roost.core.monitoring.facts import FactRow, Name
from roost.errors import Unavailable
from roost.ports import Pending
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.active_agents import ActiveAgents
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.meetings import receive
from roost.stores.sql.meetings.outcomes import Received

log = logging.getLogger("roost.meetings")

MAX_POSTS = 1_000
"""Maximum posts in one write."""
_FACTS = {"running": Name.MEETING_STARTED, "failed": Name.MEETING_FAILED, "ended": Name.MEETING_ENDED}


class MeetingDelivery:
    """Delivers posts and wakes the callers that wait for a meeting. Any thread may call."""

    def __init__(self, context: RuntimeContext, notifier: Notifier, agents: ActiveAgents) -> None:
        self._context = context
        self._notifier = notifier
        self._agents = agents
        self.closing = False
        """True while Roost closes: then a failed write is not logged."""
        self._lock = context.host.lock()
        self._waiting: deque[Envelope] = deque()
        self._ticks: dict[tuple[str, str], None] = {}
        self._writing = False
        self._last_words: dict[tuple[str, str], tuple[float, float]] = {}
        """Times of the first and the last message before each pending turn; a message of a user does not wait."""
        self.waiters: dict[str, list[Pending[Any]]] = {}
        """Callers that wait for a change of a meeting."""

    def put(self, envelopes: Iterable[Envelope]) -> None:
        self._waiting.extend(envelopes)
        self._start()

    def check(self, who: Iterable[tuple[str, str]]) -> None:
        """Have these participants check these meetings: a timer is due."""
        with self._lock:
            self._ticks |= dict.fromkeys(who)
        self._start()

    def _start(self) -> None:
        """Start a write if none is in flight."""
        if not (self._waiting or self._ticks):
            return
        with self._lock:
            begins, self._writing = not self._writing, True
        if begins:
            self._write()

    def _write(self) -> None:
        waiting, host = self._waiting, self._context.host
        group = tuple(waiting.popleft() for _ in range(min(len(waiting), MAX_POSTS)))
        with self._lock:
            ticks, self._ticks = tuple(self._ticks), {}
            if not group and not ticks:
                self._writing = False
        if not group and not ticks:
            self._start()  # another post may have arrived in between
            return
        awake = frozenset(e.address for e in group if self._agents.is_awake(e.address))
        failed = partial(self._failed, group)
        try:
            self._context.store.write(
                receive.receive_posts,
                host.new_id("post"),
                group,
                ticks,
                host.clock.now(),
                awake,
                facts=lambda received: self.facts(received.changes),
                then=self._received,
                failed=failed,
            )
        except Unavailable as error:
            failed(error)

    def _received(self, received: Received) -> None:
        """Notify the participants, on the writer's thread after the commit."""
        self.notify(received.changes)
        if received.posted:
            self._notifier.deliver(received.posted)
        for address in received.unready:  # it may wake a sleeping agent
            self._notifier.look(address)
        self._write()

    def _failed(self, group: tuple[Envelope, ...], error: Exception) -> None:
        """Retry after a failed write: the posts are still in the inboxes."""
        if not self.closing:
            log.warning("meeting posts could not be stored; retrying: %s", error)
        for address in {envelope.address for envelope in group}:
            activation = self._agents.awake(address)
            if activation is not None:
                activation.call(activation.look_again)
        self._write()

    # --- quiet moments ---------------------------------------------------------------------------

    def notify(self, changes: Iterable[MeetingChange]) -> None:
        """Notify participants and callers of committed changes."""
        now = self._context.host.clock.monotonic()
        for change in changes:
            self.wake_waiters(change.meeting_id)
            address = change.participant.removeprefix("agent:")
            name = (address, change.meeting_id)
            if change.at_once:
                self._last_words[name] = (-math.inf, now)  # later messages of agents do not delay it
                if (activation := self._agents.awake(address)) is not None:
                    activation.call(partial(activation.hurry, change.meeting_id))
            elif change.is_asked:
                self._last_words[name] = (self._last_words.get(name, (now, now))[0], now)

    def facts(self, changes: Iterable[MeetingChange]) -> list[FactRow]:
        """Return the facts of changes that are being committed."""
        return [self._fact(change) for change in changes if change.before != change.phase and change.phase in _FACTS]

    def quiet_in(self, address: str, meeting_id: str) -> float:
        """Return the seconds until a turn may start: messages that arrive close together are handled together."""
        spoken = self._last_words.get((address, meeting_id))
        if spoken is None:
            return 0.0
        first, last = spoken
        limits = self._context.limits
        left = min(last + limits.meeting_quiet, first + limits.meeting_most) - self._context.host.clock.monotonic()
        if left > 0.001:
            return left
        self._last_words.pop((address, meeting_id), None)
        return 0.0

    def _fact(self, change: MeetingChange) -> FactRow:
        data = {"meeting_id": change.meeting_id, "participant": change.participant}
        if change.reason:
            data["reason"] = change.reason
        kind, _, rest = change.participant.partition(":")
        about = rest if kind == "agent" else f"{rest}/"
        return self._context.facts.fact(_FACTS[change.phase], about, data, root=change.meeting_id)

    # --- waiters ---------------------------------------------------------------------------------

    def wake_waiters(self, meeting_id: str) -> None:
        for waiter in self.waiters.pop(meeting_id, ()):
            waiter.set(None)

    def wake_waiters_of(self, envelopes: Iterable[Envelope]) -> None:
        for meeting_id in {meeting_of(envelope.lane) for envelope in envelopes}:
            self.wake_waiters(meeting_id)
