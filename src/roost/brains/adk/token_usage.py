"""Token usage of model calls, as the ADK reports it."""

from __future__ import annotations

from google.adk.models.llm_response import LlmResponse

from roost.core.limits.usage import Usage
from roost.ports import Turn


def spend(turn: Turn, response: LlmResponse) -> None:
    """Record the tokens of a final response."""
    used = response.usage_metadata
    if used is not None and not response.partial:
        said = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        turn.spend(Usage(used.prompt_token_count or 0, said, model=response.model_version or ""))
