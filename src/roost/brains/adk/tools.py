"""Tools: Roost's for the agent, and the agent's own put on record, so that a repeated turn does nothing twice."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic_core import to_json

from roost.errors import ToolFailed
from roost.ports import Tool, Turn

DAY = 86_400.0
"""Seconds that a tool of the agent's own may take: the ADK has no such bound."""
_WHOLE = 1_000_000_000
_LEFT = {"state_delta", "artifact_delta"}


class Offered(BaseTool):
    """A tool of Roost's, as the ADK knows tools."""

    def __init__(self, turn: Turn, tool: Tool) -> None:
        super().__init__(name=tool.wire_name, description=tool.description)
        self._turn = turn
        self._tool = tool

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._tool.parameters
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        try:
            return {"result": await self._turn.call_tool(self._tool.name, args)}
        except ToolFailed as failure:  # told to the model, which goes on
            return {"error": str(failure)}


def offer(turn: Turn, request: LlmRequest) -> None:
    """Roost's tools, but not to a model that can use none beside what it has."""
    config = request.config
    native = any(isinstance(one, types.Tool) and not one.function_declarations for one in config.tools or [])
    if native or config.response_schema is not None or config.response_json_schema is not None:
        return
    request.append_tools([Offered(turn, tool) for tool in turn.tools if tool.wire_name not in request.tools_dict])


def put_on_record(turn: Turn, request: LlmRequest) -> None:
    """Have what the agent's own tools do put on record; those of the ADK itself do nothing outside of the turn."""
    for name, tool in request.tools_dict.items():
        function = getattr(tool, "func", None)
        own = getattr(function, "__module__", type(tool).__module__) or ""
        if not isinstance(tool, Offered) and not own.startswith("google.adk"):
            recorded, bare = copy.copy(tool), copy.copy(tool)
            for one in (recorded, bare):  # a person is asked by Roost: the turn waits for the word, however long
                one.check_require_confirmation = _never  # type: ignore[method-assign]
            recorded.run_async = _Recorded(turn, tool, bare)  # type: ignore[method-assign]
            request.tools_dict[name] = recorded


async def _never(*args: Any, **options: Any) -> bool:
    return False


class _Step(Tool):
    """A tool of the agent's own. The ADK looks after its arguments."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given)

    def bound(self, arguments: Mapping[str, Any], turn: Any) -> dict[str, Any]:
        return dict(arguments)


class _Recorded:
    """`run_async` of a tool, as a step of the turn."""

    def __init__(self, turn: Turn, tool: BaseTool, bare: BaseTool) -> None:
        self._turn = turn
        self._tool = tool
        self._bare = bare

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        results: list[Any] = []

        async def act(**arguments: Any) -> str:
            results.append(await self._bare.run_async(args=arguments, tool_context=tool_context))
            tool_context.state.has_delta()  # puts what was changed inside of a value among the changes
            actions = tool_context.actions.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            return to_json({"result": results[0], "actions": actions}, fallback=str).decode()

        repeatable = bool(getattr(getattr(self._tool, "func", None), "repeatable", False))
        asks = await self._tool.check_require_confirmation(args, tool_context)
        step = _Step(self._tool.name, "", act, limit=DAY, output=_WHOLE, repeatable=repeatable, approval=asks)
        try:
            kept = await self._turn.call_tool(step, args)
        except ToolFailed as failure:
            if failure.__cause__ is not None:
                raise failure.__cause__ from None  # as the ADK knows it
            return {"error": str(failure)}  # refused by a person, or on record
        if results:
            return results[0]
        try:
            recorded = json.loads(kept)
        except ValueError:  # a person's word, who was asked about it
            return kept
        _restore(tool_context, recorded["actions"])
        return recorded["result"]


def _restore(context: ToolContext, done: dict[str, Any]) -> None:
    """What a call did to the turn, when it was made by an earlier try."""
    for name, value in done.get("state_delta", {}).items():
        context.state[name] = value
    for name, value in done.items():
        if name not in _LEFT and name in type(context.actions).model_fields:
            setattr(context.actions, name, value)
