"""Steps of a run, recorded before and after each, so that a repeated run reuses their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from roost.core.values import checks
from roost.core.values.records import record
from roost.errors import BrainFailed


class StepKind(StrEnum):
    MODEL = "model"
    TOOL = "tool"
    STEP = "step"
    ASK = "ask"
    SENT = "sent"
    GIVEN = "given"
    """Not a step: input of the turn, so that a repeated turn gets the same."""
    STATE = "memory"
    """Not a step: change of the agent's `turn.state` by a turn of a talk; reverted if the turn is lost.

    Stored as `memory`.
    """


class StepOutcome(StrEnum):
    """Outcome of a step. If its run is gone and it is only BEGUN, its result is unknown."""

    BEGUN = "begun"
    ASKED = "asked"
    """Waits for an approval; not started."""
    DONE = "done"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    """Cancelled with its run."""
    RETRIED = "retried"
    """Failed; the next attempt repeats it."""
    STALE = "stale"
    """Done by a failed attempt; the next one repeats it."""


REUSED = frozenset({StepOutcome.DONE, StepOutcome.FAILED})
OPEN = frozenset({StepOutcome.BEGUN, StepOutcome.ASKED})


@record(frozen=True, slots=True)
class Attempt:
    """Attempt that a journal belongs to: one envelope of an agent or a talk."""

    envelope_id: str
    holder: str
    """Id of the talk, or key of the agent."""
    is_talk: bool
    epoch: int
    run_id: str
    user_id: str
    """Owner of the agent or the talk, who decides approvals."""
    agent_id: str | None
    others: tuple[str, ...] = ()
    """Further envelopes that it answers."""
    turn_input: Mapping[str, Any] | None = None
    """Input that a repeated turn must get again, where it may change meanwhile."""


@record(frozen=True, slots=True)
class Recorded:
    """Recorded step of an earlier attempt. Not `done`: it was started, and its result is unknown."""

    number: int
    kind: str
    name: str
    result: str | None
    done: bool
    key: str = ""
    """Key for matching: kind, name, request, and the number of equal requests before it.

    For a request to an agent it is the digest of the question; in an older store it may be missing.
    """
    outcome: str = ""
    run_id: str = ""
    seconds: float | None = None
    """Duration; None if a person gave the result, or it has none."""


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a run, for display."""

    number: int
    kind: str
    name: str
    outcome: str
    request: Any
    """Arguments of a tool, or input of a model (cut if it is long)."""
    result: Any
    began: datetime
    ended: datetime | None
    run_id: str
    """Run that executed it. Later runs of the same envelope reuse its result."""
    key: str
    """Idempotency key that is passed to the tool."""
    approval_id: str | None = None
    """Approval that it asked for."""
    asked_run_id: str | None = None
    """Run of the user's own agent that handled the question, if it is on record."""


def canonical(value: Any, what: str) -> str:
    """Return the canonical JSON text of a value."""
    try:
        return checks.whole(json.dumps(value, allow_nan=False, sort_keys=True, ensure_ascii=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise BrainFailed(f"{what} must be a JSON value: {error}", kind="internal") from error


class EarlierRequests:
    """Requests of earlier attempts to other agents, matched by recipient and text, each once, in order.

    A request that was cancelled with its run is matched only by a replay of that run, `run_id`.
    """

    def __init__(self, recorded: Iterable[Recorded], run_id: str = "") -> None:
        self._left = [request for request in recorded if request.kind == StepKind.ASK and _counts(request, run_id)]

    def take(self, recipient: str, text: str) -> Recorded | None:
        if not self._left:
            return None
        key = digest(str(text))
        found = next(
            (request for request in self._left if request.name == recipient and request.key in (key, "")), None
        )
        if found is not None:
            self._left.remove(found)
        return found


Content = list[Any]
"""Content of a send: its kind, its recipient and all options."""


def content_key(content: Content, clean: Callable[[str], str]) -> str:
    """Return the key that matches a send of a repeated turn: its kind and a digest of its content.

    The digest is computed without secrets, since a repeated turn gets its results without them.
    """
    return f"{content[0]}:{digest(clean(frozen(content)))}"


def frozen(value: Any) -> str:
    """Return the same text for equal values, even for a value that cannot be sent: sending it fails later."""
    for write in (_as_json, repr):
        with suppress(Exception):  # a brain's own value may raise anything
            return write(value)
    return f"<{type(value).__name__}>"


def _as_plain(value: Any) -> Any:
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else repr(value)


_as_json = json.JSONEncoder(sort_keys=True, ensure_ascii=False, default=_as_plain).encode


def _counts(asked: Recorded, run_id: str) -> bool:
    if asked.outcome == StepOutcome.INTERRUPTED:
        return bool(run_id) and asked.run_id == run_id
    return asked.outcome != StepOutcome.RETRIED


def digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:24]


def idempotency_key(envelope_id: str, key: str) -> str:
    """Return a key that is the same for each repetition of a step, and unique to it."""
    return f"key_{digest(f'{envelope_id} {key}')}"


def cut(text: str, most: int) -> str:
    """Cut a text that is too long, with a remark."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n[… cut here: {len(text):,} characters in all, of which {most:,} are given]"
