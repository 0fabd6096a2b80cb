"""Schedules, and the results of timer operations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from roost.core.envelopes.envelope import Envelope
from roost.core.schedules.rules import MissedPolicy, Overlap, Rule
from roost.core.values.priority import Priority


@dataclass(frozen=True, slots=True)
class Schedule:
    """Schedule of an agent as its owner sees it. `next` is None if it never runs again."""

    schedule_id: str
    agent_id: str
    user_id: str
    name: str
    prompt: str
    priority: Priority
    rule: Rule
    overlap: Overlap
    missed: MissedPolicy
    catch_up: float
    paused: bool
    next: datetime | None
    created: datetime


@dataclass(frozen=True, slots=True)
class Realigned:
    """Timers that were recomputed after a clock error: schedules by id, the rest by address."""

    schedules: tuple[str, ...]
    sleepers: tuple[str, ...]
    mail: tuple[str, ...]
    retries: tuple[str, ...]
    meetings: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(getattr(self, name) for name in self.__slots__)

    def __str__(self) -> str:
        counts = {name: len(getattr(self, name)) for name in self.__slots__}
        return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count) or "nothing"


@dataclass(frozen=True, slots=True)
class Fired:
    """Result of firing due timers: addresses to check, envelopes posted, ticks cancelled."""

    looked: tuple[str, ...]
    posted: tuple[Envelope, ...]
    cancelled: tuple[tuple[str, str], ...]
    more: bool
    next: float | None
    meetings: tuple[tuple[str, str], ...] = ()
    """Participants that check their meeting, each with the meeting."""
    expiring: tuple[str, ...] = ()
    """Addresses with expired envelopes."""
