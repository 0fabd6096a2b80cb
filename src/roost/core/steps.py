"""Steps: what a run did on its way, written before and after, so that a repeated run need not do it again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from roost.core import checks
from roost.core.records import record
from roost.errors import BrainFailed


class StepKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    STEP = "step"
    ASK = "ask"
    SENT = "sent"
    GIVEN = "given"
    """No step: what the turn was given, so that a repeated one is given the same."""


class StepOutcome(StrEnum):
    """How a step stands. What is only BEGUN when its run is gone: whether it was done is not known."""

    BEGUN = "begun"
    ASKED = "asked"
    """A person is asked about it, and it has not begun."""
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Cut off by whoever stopped the run, or changed its mind."""
    RETRIED = "retried"
    """It failed, and is done again by the next try."""
    STALE = "stale"
    """Done by a try that failed, and asked anew by the next one."""


REUSED = frozenset({StepOutcome.DONE, StepOutcome.FAILED})
OPEN = frozenset({StepOutcome.BEGUN, StepOutcome.ASKED})


@record(frozen=True, slots=True)
class Try:
    """For what a journal is kept: one try of one envelope, of an agent or of a talk."""

    envelope_id: str
    holder: str
    """The talk's id, or the agent's key."""
    is_talk: bool
    epoch: int
    run_id: str
    user_id: str
    """Whom to ask: the owner of the agent, or of the talk."""
    agent_id: str | None
    others: tuple[str, ...] = ()
    """What else is answered with it."""
    given: Mapping[str, Any] | None = None
    """What a repeated turn is to be given again, where that may change meanwhile."""


@record(frozen=True, slots=True)
class Recorded:
    """What earlier tries have on record. Not `done`: it was begun, and how it ended is not known."""

    number: int
    kind: str
    name: str
    result: str | None
    done: bool
    key: str = ""
    """By what it is found again: kind, name, what was asked, and how often the same was asked before it.

    Of what another agent was asked, it is the digest of the question; of an older store it may be missing.
    """
    outcome: str = ""
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a run, for looking at it."""

    number: int
    kind: str
    name: str
    outcome: str
    request: Any
    """What was asked: the arguments of a tool, what a model was given (cut if it is long)."""
    result: Any
    began: datetime
    ended: datetime | None
    run_id: str
    """The run that did it. A later run of the same was given its result."""
    key: str
    """What a tool is given, so that whoever it acts upon can tell a repetition."""


def canonical(value: Any, what: str) -> str:
    """The one text for what JSON can hold."""
    try:
        return checks.whole(json.dumps(value, allow_nan=False, sort_keys=True, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BrainFailed(f"{what} must be what JSON can hold: {error}", kind="internal") from error


class Asked:
    """What earlier tries have asked other agents: found again by whom and what, each once, in order."""

    def __init__(self, recorded: Iterable[Recorded]) -> None:
        self._left = [
            one for one in recorded if one.kind == StepKind.ASK and one.outcome != StepOutcome.RETRIED
        ]  # fmt: skip

    def take(self, whom: str, text: str) -> Recorded | None:
        if not self._left:
            return None
        key = digest(str(text))
        found = next((one for one in self._left if one.name == whom and one.key in (key, "")), None)
        if found is not None:
            self._left.remove(found)
        return found


def digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def idempotency_key(envelope_id: str, key: str) -> str:
    """The same whenever the same turn asks for the same step, and of no other step."""
    return f"key_{digest(f'{envelope_id} {key}')}"


def cut(text: str, most: int) -> str:
    """The beginning of a text that is too long, which says so."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… cut here: {len(text):,} characters in all, of which {most:,} are given]"
