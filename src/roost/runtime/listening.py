"""Listening: what participants of meetings send each other is taken into their logs here; no brain is needed for it.

One write is under way, and all that comes meanwhile gathers behind it. When it is done, those who are to be asked are
handed their turns; while others speak, a turn waits for a quiet moment.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from roost.core.envelopes import Envelope
from roost.core.facts import Name
from roost.core.meetings.effects import MeetingChange, meeting_of
from roost.errors import Unavailable
from roost.ports import Heard, Pending
from roost.runtime.attending import hurry
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

log = logging.getLogger("roost.meetings")

MOST = 1_000
"""Posts in one write."""
_TOLD = {"running": Name.MEETING_STARTED, "failed": Name.MEETING_FAILED, "ended": Name.MEETING_ENDED}


class Listener:
    """Any thread may call."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._lock = shop.host.lock()
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
        """One writes: whoever finds nobody at it."""
        if not (self._waiting or self._ticks):
            return
        with self._lock:
            begins, self._writing = not self._writing, True
        if begins:
            self._write()

    def _write(self) -> None:
        waiting, host = self._waiting, self._shop.host
        group = tuple(waiting.popleft() for _ in range(min(len(waiting), MOST)))
        with self._lock:
            ticks, self._ticks = tuple(self._ticks), {}
            if not group and not ticks:
                self._writing = False
        if not group and not ticks:
            self._begin()  # something may have come in between
            return
        awake = frozenset(e.address for e in group if self._hall.is_awake(e.address))
        failed = partial(self._failed, group)
        try:
            self._shop.store.write(
                self._shop.statements.meetings.hear, host.new_id("post"), group, ticks, host.clock.now(), awake,
                then=self._heard, failed=failed,
            )  # fmt: skip
        except Unavailable as error:
            failed(error)

    def _heard(self, heard: Heard) -> None:
        """On the writer's thread, after the commit."""
        self.told(heard.changes)
        self._hall.posted(heard.posted)
        for address in heard.unready:  # it may be what a sleeper waits for
            self._hall.look(address)
        self._write()

    def _failed(self, group: tuple[Envelope, ...], error: Exception) -> None:
        """It is still in the inboxes, and found there."""
        if not self._hall.closing:
            log.warning("what is said in meetings is heard later: %s", error)
        for address in {envelope.address for envelope in group}:
            activation = self._hall.awake(address)
            if activation is not None:
                activation.call(activation.look_again)
        self._write()

    # --- quiet moments ---------------------------------------------------------------------------

    def told(self, changes: Iterable[MeetingChange]) -> None:
        """This has changed for these participants, and is written."""
        now = self._shop.host.clock.monotonic()
        for change in changes:
            self.ring(change.meeting_id)
            address = change.participant.removeprefix("agent:")
            name = (address, change.meeting_id)
            if change.at_once:
                self._speech[name] = (-math.inf, now)  # whatever agents say until it begins
                if (activation := self._hall.awake(address)) is not None:
                    activation.call(partial(hurry, activation, change.meeting_id))
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
        limits = self._shop.limits
        left = min(last + limits.meeting_quiet, first + limits.meeting_most) - self._shop.host.clock.monotonic()
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
        self._shop.monitor.tell(name, about, data, root=change.meeting_id)

    # --- news ------------------------------------------------------------------------------------

    def ring(self, meeting_id: str) -> None:
        for bell in self.bells.pop(meeting_id, ()):
            bell.set(None)

    def ring_of(self, envelopes: Iterable[Envelope]) -> None:
        for meeting_id in {meeting_of(envelope.lane) for envelope in envelopes}:
            self.ring(meeting_id)
