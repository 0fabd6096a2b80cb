"""Delivery of meeting posts into the logs of the participants; no brain is needed for it.

One write is in flight, and later posts are batched behind it. After its commit the next participants get their turns;
while others speak, a turn waits for a quiet moment.
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
from roost.core.monitoring.facts import Name
from roost.errors import Unavailable
from roost.ports import Pending
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.active_agents import ActiveAgents
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.meetings import receive
from roost.stores.sql.meetings.outcomes import Heard

log = logging.getLogger("roost.meetings")

MOST = 1_000
"""Posts in one write."""
_TOLD = {"running": Name.MEETING_STARTED, "failed": Name.MEETING_FAILED, "ended": Name.MEETING_ENDED}


class MeetingDelivery:
    """Any thread may call."""

    def __init__(self, context: RuntimeContext, notifier: Notifier, agents: ActiveAgents) -> None:
        self._context = context
        self._notifier = notifier
        self._agents = agents
        self.closing = False
        """True if the process closes: then a failed write is no news."""
        self._lock = context.host.lock()
        self._waiting: deque[Envelope] = deque()
        self._ticks: dict[tuple[str, str], None] = {}
        self._writing = False
        self._speech: dict[tuple[str, str], tuple[float, float]] = {}
        """Of turns to come: when the first words came that it is about, and the last. A person's have waited enough."""
        self.bells: dict[str, list[Pending[Any]]] = {}
        """Who waits for news of a meeting."""

    def put(self, envelopes: Iterable[Envelope]) -> None:
        self._waiting.extend(envelopes)
        self._begin()

    def tick(self, who: Iterable[tuple[str, str]]) -> None:
        """These participants look at these meetings: their time has come."""
        with self._lock:
            self._ticks |= dict.fromkeys(who)
        self._begin()

    def _begin(self) -> None:
        """Begin a write if none is under way."""
        if not (self._waiting or self._ticks):
            return
        with self._lock:
            begins, self._writing = not self._writing, True
        if begins:
            self._write()

    def _write(self) -> None:
        waiting, host = self._waiting, self._context.host
        group = tuple(waiting.popleft() for _ in range(min(len(waiting), MOST)))
        with self._lock:
            ticks, self._ticks = tuple(self._ticks), {}
            if not group and not ticks:
                self._writing = False
        if not group and not ticks:
            self._begin()  # something may have come in between
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
                then=self._heard,
                failed=failed,
            )
        except Unavailable as error:
            failed(error)

    def _heard(self, heard: Heard) -> None:
        """On the writer's thread, after the commit."""
        self.notify(heard.changes)
        if heard.posted:
            self._notifier.deliver(heard.posted)
        for address in heard.unready:  # it may be what a sleeper waits for
            self._notifier.look(address)
        self._write()

    def _failed(self, group: tuple[Envelope, ...], error: Exception) -> None:
        """It is still in the inboxes, and found there."""
        if not self.closing:
            log.warning("what is said in meetings is heard later: %s", error)
        for address in {envelope.address for envelope in group}:
            activation = self._agents.awake(address)
            if activation is not None:
                activation.call(activation.look_again)
        self._write()

    # --- quiet moments ---------------------------------------------------------------------------

    def notify(self, changes: Iterable[MeetingChange]) -> None:
        """This has changed for these participants, and is written."""
        now = self._context.host.clock.monotonic()
        for change in changes:
            self.ring(change.meeting_id)
            address = change.participant.removeprefix("agent:")
            name = (address, change.meeting_id)
            if change.at_once:
                self._speech[name] = (-math.inf, now)  # whatever agents say until it begins
                if (activation := self._agents.awake(address)) is not None:
                    activation.call(partial(activation.hurry, change.meeting_id))
            elif change.is_asked:
                self._speech[name] = (self._speech.get(name, (now, now))[0], now)
            if change.before != change.phase and change.phase in _TOLD:
                self._tell(change, _TOLD[change.phase])

    def quiet_in(self, address: str, meeting_id: str) -> float:
        """In how many seconds a turn may begin: words that come close together are handed over together."""
        spoken = self._speech.get((address, meeting_id))
        if spoken is None:
            return 0.0
        first, last = spoken
        limits = self._context.limits
        left = min(last + limits.meeting_quiet, first + limits.meeting_most) - self._context.host.clock.monotonic()
        if left > 0.001:
            return left
        self._speech.pop((address, meeting_id), None)
        return 0.0

    def _tell(self, change: MeetingChange, name: Name) -> None:
        data = {"meeting_id": change.meeting_id, "participant": change.participant}
        if change.reason:
            data["reason"] = change.reason
        kind, _, rest = change.participant.partition(":")
        about = rest if kind == "agent" else f"{rest}/"
        self._context.monitor.record(name, about, data, root=change.meeting_id)

    # --- news ------------------------------------------------------------------------------------

    def ring(self, meeting_id: str) -> None:
        for bell in self.bells.pop(meeting_id, ()):
            bell.set(None)

    def ring_of(self, envelopes: Iterable[Envelope]) -> None:
        for meeting_id in {meeting_of(envelope.lane) for envelope in envelopes}:
            self.ring(meeting_id)
