"""Where Roost takes part in a run of the ADK: before each call of the model, and when a tool fails."""

from __future__ import annotations

from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from roost.brains.adk.sessions import Sessions, content_of
from roost.brains.adk.voice import Voice
from roost.ports import Turn


class Part(BasePlugin):
    """Roost's part in one turn."""

    def __init__(self, turn: Turn, sessions: Sessions, voice: Voice) -> None:
        super().__init__(name="roost")
        self._turn = turn
        self._sessions = sessions
        self._voice = voice
        self.failed: list[BaseException] = []
        """Of tools."""

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        await self._steer(callback_context, llm_request)
        profile = self._turn.profile
        if profile.instructions:
            llm_request.append_instructions([profile.instructions])
        if profile.temperature is not None:
            llm_request.config.temperature = profile.temperature
        if profile.model:
            llm_request.model = profile.model
        return None

    async def _steer(self, context: CallbackContext, request: LlmRequest) -> None:
        """What the person said meanwhile is taken in now; what follows is a message of its own."""
        messages = self._turn.steered()
        if not messages:
            return
        content = content_of(messages)
        self._sessions.took(messages)
        event = Event(author="user", invocation_id=context.invocation_id, content=content)
        await self._sessions.append_event(context.session, event)
        request.contents.append(content)
        self._voice.afresh()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.failed.append(error)
