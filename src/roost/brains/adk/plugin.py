"""Where Roost takes part in a run of the ADK: around each call of a model, and of a tool."""

from __future__ import annotations

from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from roost.brains.adk import tools
from roost.brains.adk.questions import Questions
from roost.brains.adk.sessions import Sessions, content_of
from roost.brains.adk.voice import Voice
from roost.core.usage import Usage
from roost.ports import Turn


class Part(BasePlugin):
    """Roost's part in one turn."""

    def __init__(self, turn: Turn, sessions: Sessions, voice: Voice) -> None:
        super().__init__(name="roost")
        self._turn = turn
        self._sessions = sessions
        self._voice = voice
        self.questions = Questions(turn)
        self.failed: list[BaseException] = []
        """Of tools."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        self._turn.allowance()
        await self._steer(callback_context, llm_request)
        self._set(llm_request)
        tools.offer(self._turn, llm_request)
        tools.put_on_record(self._turn, llm_request)
        return await self.questions.ask(callback_context.agent_name, llm_request)

    def _set(self, request: LlmRequest) -> None:
        """What the profile, or the talk, says goes before what the agent says."""
        profile = self._turn.profile
        if profile.instructions:
            request.append_instructions([profile.instructions])
        if profile.temperature is not None:
            request.config.temperature = profile.temperature
        if profile.max_tokens is not None:
            request.config.max_output_tokens = profile.max_tokens
        if profile.model:
            request.model = profile.model

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        self.questions.hear(callback_context.agent_name, llm_response)
        used = llm_response.usage_metadata
        if used is not None and not llm_response.partial:
            said = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
            self._turn.spend(Usage(used.prompt_token_count or 0, said, model=llm_response.model_version or ""))
        return None

    async def _steer(self, context: CallbackContext, request: LlmRequest) -> None:
        """What the person said meanwhile is taken in now; what follows is a message of its own."""
        messages = self._turn.steered()
        if not messages:
            return
        content = content_of(message.content for message in messages)
        self._sessions.took(messages)
        event = Event(author="user", invocation_id=context.invocation_id, content=content)
        await self._sessions.append_event(context.session, event)
        request.contents.append(content)
        self._voice.afresh()

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> None:
        await self.questions.answered(tool_context.agent_name)

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.failed.append(error)
