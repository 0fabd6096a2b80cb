"""Summaries of older messages of a long talk, for ADK agents.

A summary is made by the agent's own model when the window of newest messages moves on, on top of the one before, and
kept as a note of the answer that follows, as all brains do (see `brains.chat.context`).
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types

from roost.brains.adk.token_usage import spend
from roost.brains.chat import context
from roost.brains.chat.dialogue import SUMMED_UP
from roost.core.talks.messages import Message
from roost.errors import RoostError
from roost.ports import Turn

log = logging.getLogger("roost.adk")

WINDOW = 32_000
"""Default context window in tokens."""
MOST = 400
"""Messages that are summarized at once: of a longer talk without a summary the oldest are omitted."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Summary of the messages up to `covered`; empty if there is none."""

    text: str
    covered: int
    is_new: bool = False

    def shown(self) -> str:
        """Return the text for the model."""
        if self.text:
            return SUMMED_UP + self.text
        return f"[The messages up to number {self.covered} of this conversation are left out.]"

    def noted(self) -> str:
        return context.note(self.text, self.covered, WINDOW)


async def summary_of(turn: Turn, agent: object, start: int) -> Summary | None:
    """Return the existing or a new summary of the messages up to `start`; None if there are none."""
    if start <= 0:
        return None
    text, covered = _known(turn.history, start)
    if covered >= start:
        return Summary(text, covered)
    older = _between(turn.history, covered, start)
    model = model_of(agent)
    if model is None or not older:
        return Summary(text, start) if older else None
    try:
        return Summary(await _summed_up(turn, model, text, older), start, is_new=True)
    except RoostError:
        raise
    except Exception as error:  # the talk continues without it, and the next turn retries
        log.warning(
            "cannot summarize the messages up to %d of a talk; continuing without: %s", start, error, exc_info=error
        )
        return Summary(text, start)


def model_of(agent: object) -> BaseLlm | None:
    """Return the model of an agent, or of its first descendant with one."""
    if isinstance(agent, LlmAgent):
        return agent.canonical_model
    below = agent.sub_agents if isinstance(agent, BaseAgent) else ()
    return next((found for child in below if (found := model_of(child)) is not None), None)


def _known(history: Sequence[Message], start: int) -> tuple[str, int]:
    """Return the newest summary among the shown messages, or the one before."""
    for number, message in enumerate(reversed(history)):
        if message.seq <= start and number > MOST:
            break
        text, covered = context.noted_in(message, short=False)
        if covered:
            return text, covered
    return "", 0


def _between(history: Sequence[Message], covered: int, start: int) -> list[Message]:
    found: list[Message] = []
    for message in reversed(history):
        if message.seq <= covered or len(found) == MOST:
            break
        if message.seq <= start:
            found.append(message)
    return found[::-1]


async def _summed_up(turn: Turn, model: BaseLlm, summary: str, messages: Sequence[Message]) -> str:
    window = turn.profile.window or WINDOW
    for portion in context.portions(messages, window):
        conversation = "\n\n".join(context.clipped(context.as_dialogue_line(message), window) for message in portion)
        before = f"{SUMMED_UP}{summary}\n\n" if summary else ""
        summary = await _asked(turn, model, f"{before}{conversation}\n\n{context.ASK}") or summary
    return summary


async def _asked(turn: Turn, model: BaseLlm, text: str) -> str:
    """Ask the model as a recorded step: a repeated turn gets the recorded answer."""
    turn.allowance()
    name = turn.profile.model or model.model
    async with turn.model_call(name, {"sum up": text}) as call:
        if call.recorded is not None:
            return str(call.recorded)
        content = types.Content(role="user", parts=[types.Part(text=text)])
        request = LlmRequest(model=name, contents=[content], config=types.GenerateContentConfig())
        said = ""
        responses: AsyncGenerator[LlmResponse, None] = model.generate_content_async(request, stream=False)
        async with aclosing(responses):
            async for response in responses:
                spend(turn, response)
                said += "" if response.partial else _words(response)
        call.response = said.strip()
    return said.strip()


def _words(response: LlmResponse) -> str:
    parts = response.content.parts or [] if response.content else []
    return "".join(part.text for part in parts if part.text and not part.thought)
