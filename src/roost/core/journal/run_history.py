"""History of runs for users: runs with their steps, and replays."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from roost.core.brain_data.memories import Memory
from roost.core.journal.steps import Step
from roost.core.limits.usage import NOTHING, Usage
from roost.core.meetings.view.shown import MeetingSummary, Refusal, plain_summary
from roost.core.talks.talk import Receipt

STATE_CHARS = 65_536
"""A longer `turn.state` is not stored for a replay."""


FORMAT = 2
"""Version of the stored record. From 2 on, a run without `did` has no compared actions."""


def turn_input(profile: str, state: str | None, seen: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the input of a turn beside its messages, as stored for a replay; empty parts are left out."""
    kept: dict[str, Any] = {"profile": profile, "v": FORMAT, **{name: value for name, value in more.items() if value}}
    if state and len(state) > STATE_CHARS:
        kept["state_is_missing"] = True
    elif state and state != "{}":
        kept["state"] = state
    if seen:
        kept["seen"] = {name: [_plain(value) for value in values] for name, values in seen.items()}
    return kept


_TOLD = frozenset({"state", "taken_over", "options", "seen", "message", "did"})
"""Parts that may contain secrets."""


def as_text(kept: Mapping[str, Any], clean: Callable[[str], str]) -> str:
    """Return the stored form, without secrets."""
    if _TOLD.isdisjoint(kept):
        return json.dumps(kept)
    text = clean(json.dumps({name: value for name, value in kept.items() if name != "state"}))
    if "state" not in kept:
        return text
    return json.dumps({**json.loads(text), "state": clean(kept["state"])})  # a state is JSON in itself


def _plain(value: Any) -> Any:
    if isinstance(value, tuple) and any(isinstance(item, MeetingSummary) for item in value):
        return [plain_summary(item) for item in value]
    if isinstance(value, tuple):
        return [[item.key, item.text, item.created.isoformat()] for item in value if isinstance(item, Memory)]
    return value


def parsed_input(text: str | None) -> dict[str, Any]:
    """Return the stored input of a turn; empty if it cannot be read."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


@dataclass(frozen=True, slots=True)
class RunInput:
    """Message that a run handled."""

    sender: str
    text: str
    """For an event, its name."""
    subject: str = ""
    data: Any = None
    """Data of an event."""


@dataclass(frozen=True, slots=True)
class Run:
    """Finished run of a brain."""

    run_id: str
    kind: str
    talk_session_id: str | None
    agent_id: str | None
    envelope_id: str
    """Envelope it handled; in a talk, the first message it answered."""
    outcome: str
    attempts: int
    started: datetime
    ended: datetime
    fault: str | None
    steps: int
    """Number of recorded steps of its envelope."""
    root: str
    meeting_id: str | None = None
    """Meeting of the turn, if any."""
    usage: Usage = NOTHING
    """Usage of its models."""


@dataclass(frozen=True, slots=True)
class RunEntry:
    """Run with its answer and its actions."""

    run: Run
    text: str
    steps: tuple[Step, ...]
    given: Mapping[str, Any]
    """Input of the turn beside its messages; see the concept of the journal."""
    usage: Usage = NOTHING
    """Usage of its models."""
    refused: tuple[Refusal, ...] = ()
    """Its entries that the meeting refused, while the log of the meeting is kept."""
    traceback: str | None = None
    """The traceback of its failure, without secrets; over HTTP only for the user who runs the server."""
    inputs: tuple[RunInput, ...] = ()
    """Messages that it handled, as far as they are kept; empty for a turn in a meeting."""
    first_output: datetime | None = None
    """Time at which the first words of its answer in a talk could be read."""
    stop: Receipt | None = None
    """Receipt of its stop, if it answered in a talk and was stopped."""


@dataclass(frozen=True, slots=True)
class Replay:
    """Result of running a run again from its journal."""

    run_id: str
    text: str
    recorded_text: str
    is_identical: bool
    """True if answer, steps, sends, requests, state, memories and thoughts are the same. With `until`: so far."""
    diff: str
    """Differences, one per line; empty if there are none."""
    steps: tuple[str, ...]
    """Its steps, in order."""
    sent: tuple[str, ...]
    """Sends that the run would repeat; a replay sends nothing."""
    stopped_at: int | None
    """Number of steps after which it was stopped, if it was."""
    error: str | None
