"""Webhooks: chosen facts of a user, posted to a URL."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.monitoring.facts import FactRow, Name, owner_of
from roost.core.talks.messages import at
from roost.core.values import checks, patterns
from roost.errors import Invalid

PING = "Ping"
"""Type of a message that tests a webhook."""
FIRST_DELAY, GROWTH, LONGEST_DELAY = 5.0, 6.0, 12 * 3600.0
MOST_EVENTS = 50
UNSENT = frozenset({Name.FACTS_MISSED})
"""Facts about the stream itself, which are not posted."""


class DeliveryState(StrEnum):
    """State of a delivery. `failed`: it was tried as often as allowed."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Webhook:
    """Webhook of a user, without its secret."""

    webhook_id: str
    user_id: str
    name: str
    url: str
    events: tuple[str, ...]
    """Names of facts, or patterns of them."""
    created: datetime
    paused: bool = False
    reason: str | None = None
    """Reason for which it is paused."""
    failures: int = 0
    """Failed attempts since the last success."""
    last_success: datetime | None = None
    missed: int = 0
    """Facts that were not kept because too many deliveries were pending."""


@dataclass(frozen=True, slots=True)
class CreatedWebhook:
    """Webhook with its new secret, which is shown only once."""

    webhook: Webhook
    secret: str


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivery of one fact to a webhook, with its last attempt."""

    delivery_id: str
    """Also the `webhook-id` of its requests: the same for each attempt."""
    webhook_id: str
    event: str
    state: DeliveryState
    created: datetime
    attempts: int = 0
    next_attempt: datetime | None = None
    status: int | None = None
    """HTTP status of the last attempt; None if there was no reply."""
    seconds: float | None = None
    error: str | None = None
    reply: str = ""
    """Start of the body of a reply that was no success."""


@dataclass(frozen=True, slots=True)
class DueDelivery:
    """Delivery that is due, with everything that a request needs."""

    delivery_id: str
    webhook_id: str
    user_id: str
    event: str
    body: str
    created: float
    attempts: int
    url: str
    secrets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChosenFacts:
    """Choice of one webhook."""

    webhook_id: str
    events: tuple[str, ...]

    def has(self, row: FactRow) -> bool:
        """Return whether a fact is posted. Facts about a webhook are not posted to itself: it may be broken."""
        name, data = row[0], row[4]
        if name in UNSENT or data.get("webhook_id") == self.webhook_id:
            return False
        return any(patterns.text_matches(pattern, name) for pattern in self.events)


def checked_events(value: object) -> tuple[str, ...]:
    """Return the names and patterns of facts. Raise Invalid if one fits no fact."""
    if isinstance(value, str | Mapping) or not isinstance(value, Iterable):
        raise Invalid(f"the events must be a list, not {checks.shown(value)}")
    found = tuple(dict.fromkeys(checks.name(one, "the event") for one in value))
    if not found or len(found) > MOST_EVENTS:
        raise Invalid(f"a webhook must have 1 to {MOST_EVENTS} events: use '*' for all facts")
    names = [name for name in Name if name not in UNSENT]
    for one in found:
        if " " in one or not any(patterns.text_matches(one, name) for name in names):
            raise Invalid(f"no fact is called {one!r:.80}: use names such as TaskDone, patterns such as Task*, or '*'")
    return found


def body_of(row: FactRow) -> str:
    """Return the message about a fact, as JSON."""
    name, when, _, about, data, root = row
    is_person = about is not None and about.endswith("/")
    return _message(name, when, owner_of(row), None if is_person else about, data, root)


def ping_body(user_id: str, now: float) -> str:
    return _message(PING, now, user_id, None, {}, "")


def _message(kind: str, when: float, user_id: str, about: str | None, data: Mapping[str, Any], root: str) -> str:
    time = at(when).isoformat().replace("+00:00", "Z")
    message = {"type": kind, "timestamp": time, "user": user_id, "about": about, "data": dict(data), "root": root}
    return json.dumps(message, ensure_ascii=False, default=str)


def delay_after(attempts: int, jitter: float) -> float:
    """Return the seconds before the next attempt: 5 s, 30 s, 3 min, 18 min, 2 h, 11 h, 12 h; a fifth more or less."""
    delay = min(FIRST_DELAY * GROWTH ** min(attempts - 1, 10), LONGEST_DELAY)
    return delay * (0.8 + 0.4 * jitter)
