"""Talk sessions: conversations of a user with a profile or an agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from roost.core.values.checks import NAME_LENGTH

TITLE_LENGTH = 60
FORK = " (fork)"
"""End of the title of a fork."""


class BusyPolicy(StrEnum):
    """Policy for a new message while an answer is being written."""

    INTERRUPT = "interrupt"
    QUEUE = "queue"
    REJECT = "reject"
    ROLLBACK = "rollback"
    STEER = "steer"
    COLLECT = "collect"


@dataclass(frozen=True, slots=True)
class Talk:
    """Talk session as its owner sees it. `options` override model, temperature and instructions."""

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
    """Address of its agent, if it is not with a profile."""
    asking: bool = False
    """True if it waits for an approval; see `service.approvals`."""
    parent: str | None = None
    """Talk that it was branched or forked from."""
    parent_seq: int = 0
    """Number of the last message that it has in common with its parent."""
    root: str = ""
    """First talk of its branches; its own id if it has none."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """Progress of a stop: requested, acknowledged (no more output), quiesced (everything has ended).

    `abandoned` names what could not be stopped; its later output is discarded.
    """

    requested: datetime
    acknowledged: datetime | None = None
    quiesced: datetime | None = None
    abandoned: tuple[str, ...] = ()


def title_from(content: str) -> str:
    """Return a title from the first words: one line, cut between words where possible."""
    line = " ".join(content[: TITLE_LENGTH * 8].split())
    if len(line) <= TITLE_LENGTH:
        return line or "New talk"
    cut = line[: TITLE_LENGTH - 1]
    return (cut[: cut.rfind(" ")] if " " in cut[TITLE_LENGTH // 2 :] else cut) + "…"


def fork_title(title: str) -> str:
    """Return the title of a fork of the talk with this title."""
    return title if not title or title.endswith(FORK) else title[: NAME_LENGTH - len(FORK)].rstrip() + FORK
