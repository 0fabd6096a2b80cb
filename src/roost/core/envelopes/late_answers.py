"""Late answers: they arrive after the asking turn has stopped waiting."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LateAnswer:
    """Answer to a question of an earlier turn. With an `error`, `text` is empty."""

    question: str
    text: str
    error: str | None = None


def to_body(question: str, answer: Mapping[str, str]) -> str:
    """Return the body of the envelope; `answer` has a `text` or an `error`."""
    return json.dumps({"asked": question, **answer})


def from_body(body: str) -> LateAnswer:
    kept = json.loads(body)
    return LateAnswer(kept["asked"], kept.get("text", ""), kept.get("error"))
