"""Plugin of Roost in a run of the ADK, around each call of a model and of a tool."""

from __future__ import annotations

from typing import Any

from google.adk.agents.callback_context import CallbackContext
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext

from roost.brains.adk import tools
from roost.brains.adk.output import EventOutput
from roost.brains.adk.recording import Recording
from roost.brains.adk.sessions import Sessions, content_of
from roost.ports import Turn


class RoostPlugin(Recording):
    """Plugin for one turn. It is the first one, so that the agent's own plugins decide last."""

    def __init__(self, turn: Turn, sessions: Sessions, output: EventOutput) -> None:
        super().__init__(turn)
        self._turn = turn
        self._sessions = sessions
        self._output = output
        self.failed: list[BaseException] = []
        """Errors of tools."""

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        self._turn.allowance()
        await self._steer(callback_context, llm_request)
        self._set(llm_request)
        tools.offer(self._turn, llm_request)
        tools.put_on_record(self._turn, llm_request)
        self.recorder.expect(callback_context.agent_name, llm_request)

    def _set(self, request: LlmRequest) -> None:
        """Apply the settings of profile and talk, which override those of the agent."""
        profile = self._turn.profile
        if profile.instructions:
            request.append_instructions([profile.instructions])
        if profile.temperature is not None:
            request.config.temperature = profile.temperature
        if profile.max_tokens is not None:
            request.config.max_output_tokens = profile.max_tokens
        if profile.model:
            request.model = profile.model

    async def _steer(self, context: CallbackContext, request: LlmRequest) -> None:
        """Add messages that arrived meanwhile; the next text is a new message."""
        messages = self._turn.steered()
        if not messages:
            return
        content = content_of(message.content for message in messages)
        self._sessions.assign(messages)
        event = Event(author="user", invocation_id=context.invocation_id, content=content)
        await self._sessions.append_event(context.session, event)
        request.contents.append(content)
        self._output.start_message()

    async def on_tool_error_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext, error: Exception
    ) -> None:
        self.failed.append(error)
