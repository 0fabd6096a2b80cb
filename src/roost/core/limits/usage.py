"""Usage of models: tokens, and cost where the price is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of one or more model calls. The cost is in US dollars; None if it is not fully known."""

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
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            (self.cost or 0.0) + (other.cost or 0.0) if known else None,
            other.model or self.model,
        )

    def facts(self) -> Mapping[str, Any]:
        """Return the fields for a monitoring fact; empty if no model was called."""
        if not self.tokens:
            return {}
        fields = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens, "model": self.model}
        return fields if self.cost is None else {**fields, "cost": self.cost}


NOTHING = Usage()
