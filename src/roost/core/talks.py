"""Talk sessions: one conversation of one user with one profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

TITLE_LENGTH = 60


class BusyPolicy(StrEnum):
    """What a new message does to a talk that is being answered."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    REJECT = "reject"
    ROLLBACK = "rollback"
    STEER = "steer"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Talk:
    """A talk session as its owner sees it. `options` are its own model, temperature, instructions."""

    talk_session_id: str
    user_id: str
    profile: str
    busy: BusyPolicy
    title: str
    created: datetime
    updated: datetime
    messages: int
    running: bool
    options: Mapping[str, Any] = field(default_factory=dict)
    agent: str | None = None
    """The address of the agent it is with, if it is not with a profile."""
    asking: bool = False
    """Whether it waits for a person's word: see `service.approvals`."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """How far a stop has come: asked for, taken note of (nothing is said any more), all at rest.

    `abandoned` names what could not be stopped; whatever it says later reaches no one.
    """

    requested: datetime
    acknowledged: datetime | None = None
    quiesced: datetime | None = None
    abandoned: tuple[str, ...] = ()


def title_from(content: str) -> str:
    """A title from the first words of a talk: one line, cut between words where possible."""
    line = " ".join(content[: TITLE_LENGTH * 8].split())
    if len(line) <= TITLE_LENGTH:
        return line or "New talk"
    cut = line[: TITLE_LENGTH - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[TITLE_LENGTH // 2 :] else cut) + "…"
