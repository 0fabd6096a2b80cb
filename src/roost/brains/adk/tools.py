"""Tools of ADK agents: Roost's, and the agent's own, which are recorded so that a repeated turn calls none twice."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from google.adk.events import EventActions
from google.adk.models.llm_request import LlmRequest
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from pydantic_core import to_json

from roost.errors import ToolFailed
from roost.ports import Tool, Turn

DAY = 86_400.0
"""Timeout of the agent's own tools in seconds: the ADK has none."""
_WHOLE = 1_000_000_000
_LEFT = {"state_delta", "artifact_delta"}
_APPROVED = "granted"
"""Recorded result of an approval without an answer. Not `approved`, which people give as an answer."""
UNNAMED = "unnamed"
"""Id of a call to which the ADK gives none. Calls are shown by the ADK's events."""


class RoostTool(BaseTool):
    """Adapter of a Roost tool for the ADK."""

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
            called = self._turn.call_tool(self._tool.name, args, call_id=tool_context.function_call_id or UNNAMED)
            return {"result": await called}
        except ToolFailed as failure:  # returned to the model, which continues
            return {"error": str(failure)}


def offer(turn: Turn, request: LlmRequest) -> None:
    """Add Roost's tools to a request, unless the model cannot combine them with its own."""
    config = request.config
    native = any(isinstance(tool, types.Tool) and not tool.function_declarations for tool in config.tools or [])
    if native or config.response_schema is not None or config.response_json_schema is not None:
        return
    request.append_tools([RoostTool(turn, tool) for tool in turn.tools if tool.wire_name not in request.tools_dict])


def put_on_record(turn: Turn, request: LlmRequest) -> None:
    """Record the calls of the agent's own tools, and the approvals for them.

    Tools of the ADK itself have no effects outside of the turn, unless they are answered later.
    """
    for name, tool in request.tools_dict.items():
        function = getattr(tool, "func", None)
        own = getattr(function, "__module__", type(tool).__module__) or ""
        is_effectless = own.startswith("google.adk") and not tool.is_long_running
        if isinstance(tool, RoostTool) or is_effectless or isinstance(tool.__dict__.get("run_async"), _Recorded):
            continue
        recorded, bare = copy.copy(tool), copy.copy(tool)
        for variant in (recorded, bare):  # Roost asks for the approval: the turn waits for it without limit
            variant.check_require_confirmation = _never  # type: ignore[method-assign]
        recorded.run_async = _Recorded(turn, tool, bare)  # type: ignore[method-assign]
        recorded.is_long_running = False  # the turn waits for the result, and continues with it
        request.tools_dict[name] = recorded


async def _never(*args: Any, **options: Any) -> bool:
    return False


class _Step(Tool):
    """Tool of the agent. The ADK validates its arguments."""

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given)

    def bound(self, arguments: Mapping[str, Any], turn: Any) -> dict[str, Any]:
        return dict(arguments)


class _Recorded:
    """`run_async` of a tool as a recorded step, with approvals before or after it."""

    def __init__(self, turn: Turn, tool: BaseTool, bare: BaseTool) -> None:
        self._turn = turn
        self._tool = tool
        self._bare = bare

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        try:
            asks = await self._tool.check_require_confirmation(args, tool_context)
            result = await self._call(args, tool_context, asks)
            requested = tool_context.actions.requested_tool_confirmations.pop(tool_context.function_call_id or "", None)
            if requested is not None:
                await self._confirm(requested, args, tool_context)
                return await self._call(args, tool_context, False)
            return await self._later(result, args, tool_context) if self._tool.is_long_running else result
        except ToolFailed as failure:
            if failure.__cause__ is not None:
                raise failure.__cause__ from None  # the original error, which the ADK expects
            return {"error": str(failure)}  # declined by a user, or recorded

    async def _call(self, args: dict[str, Any], context: ToolContext, asks: bool) -> Any:
        """Call the tool, or return its recorded result."""
        results: list[Any] = []

        async def act(**arguments: Any) -> str:
            results.append(await self._bare.run_async(args=arguments, tool_context=context))
            context.state.has_delta()  # includes in-place changes of values in the delta
            actions = context.actions.model_dump(mode="json", exclude_defaults=True, exclude_none=True)
            return to_json({"result": results[0], "actions": actions}, fallback=str).decode()

        repeatable = bool(getattr(getattr(self._tool, "func", None), "repeatable", False))
        step = _Step(self._tool.name, "", act, limit=DAY, output=_WHOLE, repeatable=repeatable, approval=asks)
        kept = await self._turn.call_tool(step, args, call_id=context.function_call_id or UNNAMED)
        if results:
            return results[0]
        recorded = _read(kept)
        if not isinstance(recorded, dict) or recorded.keys() != {"result", "actions"}:
            return recorded  # a result given by a user
        _restore(context, recorded["actions"])
        return recorded["result"]

    async def _confirm(self, requested: ToolConfirmation, args: dict[str, Any], context: ToolContext) -> None:
        """Ask for the confirmation that the tool requests, and pass the decision to its next call."""
        shown = {**args, "confirm": requested.hint or self._tool.name}
        if requested.payload is not None:
            shown["payload"] = json.loads(to_json(requested.payload, fallback=str))
        try:
            given = await self._ask(shown)
        except ToolFailed:
            context.tool_confirmation = ToolConfirmation(hint=requested.hint, confirmed=False)
        else:
            payload = requested.payload if given is None else given
            context.tool_confirmation = ToolConfirmation(hint=requested.hint, confirmed=True, payload=payload)
        context.actions.skip_summarization = None

    async def _later(self, result: Any, args: dict[str, Any], context: ToolContext) -> Any:
        """Wait for the result of a long-running tool from a user."""
        begun = {} if result is None else {"begun": json.loads(to_json(result, fallback=str))}
        given = await self._ask({**args, **begun})
        context.actions.skip_summarization = None  # the model sees the result
        if given is not None:
            return given
        return {"result": "approved"} if result is None else result

    async def _ask(self, shown: dict[str, Any]) -> Any:
        """Return the answer of a user, or None if they only approve; raise ToolFailed if they decline."""

        async def approved(**_: Any) -> str:
            return _APPROVED

        step = _Step(self._tool.name, "", approved, repeatable=True, approval=True)
        given = await self._turn.call_tool(step, shown, call_id=UNNAMED)
        return None if given == _APPROVED else _read(given)


def _read(text: str) -> Any:
    """Parse a given or recorded result: objects and lists as JSON, anything else as text."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict | list) else text


def _restore(context: ToolContext, done: dict[str, Any]) -> None:
    """Restore the effects of a call that an earlier attempt made."""
    for name, value in done.get("state_delta", {}).items():
        context.state[name] = value
    actions = EventActions.model_validate(done)
    for requested in actions.requested_tool_confirmations.values():  # under the id of the call in this attempt
        actions.requested_tool_confirmations = {context.function_call_id or "": requested}
    for name in EventActions.model_fields.keys() & done.keys():
        if name not in _LEFT:
            setattr(context.actions, name, getattr(actions, name))
