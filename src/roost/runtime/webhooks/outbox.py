"""Outbox: facts that webhooks choose are stored in the transaction that they report."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from roost.core.envelopes.dead_letters import DeadLetter
from roost.core.monitoring.facts import FactRow, owner_of
from roost.core.webhooks.webhook import ChosenFacts, body_of
from roost.errors import Unavailable
from roost.ports import Tx
from roost.runtime.context import RuntimeContext
from roost.stores.sql.webhooks import deliveries, webhooks

log = logging.getLogger("roost.webhooks")

DeliveryRow = tuple[str, str, str, str, str, float]


class WebhookOutbox:
    """Choices of all webhooks, in RAM. Called on the threads of all writers."""

    def __init__(self, context: RuntimeContext) -> None:
        self._context = context
        self._choices: Mapping[str, tuple[ChosenFacts, ...]] = context.store.read_now(webhooks.choices)
        self._lock = context.host.lock()
        self.version = 0
        """Number of changes of the choices since the start."""
        self._pending: Counter[str] = Counter(context.store.read_now(deliveries.counts))
        """Pending deliveries by webhook, approximately: they are counted again from time to time."""
        self._ring: Callable[[str], object] = bool
        self._look: Callable[[], object] = bool
        context.facts.listen(self._record)

    def listen(self, ring: Callable[[str], object], look: Callable[[], object]) -> None:
        """Have `ring` called with each webhook that has a new delivery, and `look` when any may have one again."""
        self._ring, self._look = ring, look

    def ring(self, webhook_id: str) -> None:
        """Have the sender look at a webhook, after a commit."""
        self._ring(webhook_id)

    def look(self) -> None:
        """Have the sender look at all webhooks, after a commit."""
        self._look()

    # --- in transactions ---------------------------------------------------------------------------

    def committing(self, tx: Tx, rows: Sequence[FactRow]) -> None:
        """Store facts and dead letters that others read, and their deliveries, in their transaction."""
        self._context.facts.log.committing(tx, rows)
        if self._choices:
            self._put(tx, (*rows, *self._context.facts.letters(tx.died)))

    def reported(self, rows: Sequence[FactRow]) -> None:
        """Pass facts to the stream, and notify the sender, after their commit."""
        self._context.facts.reported(rows)
        self._notify(rows)

    def died(self, letters: Sequence[DeadLetter]) -> None:
        self._context.facts.died(letters)
        if self._choices:
            self._notify(self._context.facts.letters(letters))

    # --- changes -----------------------------------------------------------------------------------

    def changed(self, user_id: str, chosen: Mapping[str, tuple[ChosenFacts, ...]]) -> None:
        """Take over the choices of a user, after the commit that changed them."""
        with self._lock:
            self.version += 1
            others = {user: found for user, found in self._choices.items() if user != user_id}
            self._choices = others | {user: found for user, found in chosen.items() if found}

    def reload(self, version: int, choices: Mapping[str, tuple[ChosenFacts, ...]]) -> None:
        """Take over all choices as they were read, unless they were changed since: a commit may have been unknown."""
        with self._lock:
            if version == self.version:
                self._choices = choices

    @property
    def has_webhooks(self) -> bool:
        return bool(self._choices)

    def count(self, pending: Mapping[str, int]) -> None:
        """Replace the numbers of pending deliveries."""
        self._pending = Counter(pending)

    def finished(self, webhook_id: str, count: int) -> None:
        self._pending[webhook_id] -= count

    # --- inside ------------------------------------------------------------------------------------

    def _chosen(self, row: FactRow) -> Iterator[str]:
        for chosen in self._choices.get(owner_of(row), ()):
            if chosen.has(row):
                yield chosen.webhook_id

    def _put(self, tx: Tx, rows: Sequence[FactRow]) -> None:
        missed: Counter[str] = Counter()
        for row in rows:
            for webhook_id in self._chosen(row):
                if self._has_room(webhook_id):
                    deliveries.add(tx, *self._delivery(webhook_id, row))
                else:
                    missed[webhook_id] += 1
        if missed:
            deliveries.count_missed(tx, list(missed.items()))

    def _has_room(self, webhook_id: str) -> bool:
        if self._pending[webhook_id] >= self._context.limits.webhook_backlog:
            return False
        self._pending[webhook_id] += 1
        return True

    def _delivery(self, webhook_id: str, row: FactRow) -> DeliveryRow:
        delivery_id = self._context.host.new_id("msg")
        return delivery_id, webhook_id, owner_of(row), str(row[0]), body_of(row), self._context.host.clock.now()

    def _notify(self, rows: Sequence[FactRow]) -> None:
        if self._choices:
            for webhook_id in {webhook_id for row in rows for webhook_id in self._chosen(row)}:
                self.ring(webhook_id)

    def _record(self, rows: Sequence[FactRow]) -> None:
        """Store the deliveries of facts that belong to no commit."""
        if not any(True for row in rows for _ in self._chosen(row)):
            return
        try:
            self._context.store.write(self._put, rows, then=lambda _: self._notify(rows), failed=_lost)
        except Unavailable as error:
            _lost(error)


def _lost(error: Exception) -> None:
    log.warning("facts for webhooks could not be stored: %s", error)
