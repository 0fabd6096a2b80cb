"""Contents of actions: they match the sends of a repeated turn, and compare a replay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from roost.core.agents import wake
from roost.core.agents.audience import Audience
from roost.core.journal.steps import Content, frozen
from roost.core.meetings.log.bodies import Body, kind_of


def mail(to: str, subject: str, body: str, options: Mapping[str, Any]) -> Content:
    return ["mail", to, subject, body, options]


def message(to: str, text: str, options: Mapping[str, Any]) -> Content:
    return ["message", to, text, options]


def broadcast(audience: Audience, text: str, priority: str) -> Content:
    return ["broadcast", audience, text, priority]


def event(name: str, data: Any, options: Mapping[str, Any]) -> Content:
    return ["event", name, data, options]


def call(topic: str, options: Mapping[str, Any]) -> Content:
    return ["call", topic, frozen(options)]


def entry(meeting_id: str, body: Body) -> Content:
    return [kind_of(body), meeting_id, body]


def sleep(seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None) -> Content:
    """Return the content of a sleep. Only the presence of `until` is compared: it often depends on the clock."""
    return ["sleep", "", seconds, until is not None, None if wake_on is None else wake.to_json(wake_on)]
