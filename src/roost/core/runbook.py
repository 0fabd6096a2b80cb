"""Runs as they are looked at: what was done, step by step, and what a replay gives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roost.core.memories import Memory
from roost.core.steps import Step
from roost.core.usage import NOTHING, Usage

STATE_CHARS = 65_536
"""A longer state before a turn is not kept for a replay."""


def given(profile: str, state: str | None, seen: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """What a turn was given beside its messages, as it is kept for a replay: what is empty is left out."""
    kept: dict[str, Any] = {"profile": profile, **{name: value for name, value in more.items() if value}}
    if state and len(state) > STATE_CHARS:
        kept["state_is_missing"] = True
    elif state and state != "{}":
        kept["state"] = state
    if seen:
        kept["seen"] = {name: [_plain(value) for value in values] for name, values in seen.items()}
    return kept


_TOLD = frozenset({"state", "options", "seen", "message"})
"""What others have written, and may hold a secret."""


def as_text(kept: Mapping[str, Any], clean: Callable[[str], str]) -> str:
    """As it is kept; of most turns there is nothing to clean."""
    if not _TOLD.isdisjoint(kept):
        rest = {name: value for name, value in kept.items() if name != "state"}
        state = {"state": clean(kept["state"])} if "state" in kept else {}  # it is JSON in itself
        kept = {**json.loads(clean(json.dumps(rest))), **state}
    return json.dumps(kept)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [[one.key, one.text, one.created.isoformat()] for one in value if isinstance(one, Memory)]
    return value


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a brain that is over."""

    run_id: str
    kind: str
    talk_session_id: str | None
    agent_id: str | None
    envelope_id: str
    """What it was about; of a talk, the first of the messages it answered."""
    outcome: str
    attempts: int
    started: datetime
    ended: datetime
    fault: str | None
    steps: int
    """How many steps are on record of what it was about."""
    root: str
    meeting_id: str | None = None
    """Where it took part, if it was a turn in a meeting."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run with what it said and did."""

    run: Run
    text: str
    steps: tuple[Step, ...]
    given: Mapping[str, Any]
    """What the turn was given beside its messages: see the concept of the journal."""
    usage: Usage = NOTHING
    """What its models cost."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of running a run again from its journal."""

    run_id: str
    text: str
    recorded_text: str
    is_identical: bool
    """Whether it said the same, and asked for nothing that is not on record. With `until`: so far."""
    diff: str
    """What differs, as lines; empty if nothing does."""
    steps: tuple[str, ...]
    """The steps it took, in order."""
    sent: tuple[str, ...]
    """What it would have sent; nothing was."""
    stopped_at: int | None
    """After how many steps it was stopped, if it was."""
    error: str | None
