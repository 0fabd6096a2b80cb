"""What thinking costs: tokens of a model, and money where the price is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one call of a model, or of several together. The cost is in US dollars; None: not known, or not all of it."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    model: str = ""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        if not self.tokens:
            return other
        known = self.cost is not None and other.cost is not None
        return Usage(
            self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None, other.model or self.model,
        )  # fmt: skip

    def facts(self) -> Mapping[str, Any]:
        """As the monitor tells it; nothing of a run that asked no model."""
        if not self.tokens:
            return {}
        told = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "model": self.model}
        return told if self.cost is None else {**told, "cost": self.cost}


NOTHING = Usage()
