"""Tool calls of a model and their results."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from roost.brains.chat.dialogue import ToolCall, ToolResult
from roost.core.talks.side_channels import Channel, answered, called
from roost.errors import ToolFailed
from roost.ports import Chunk, ClientTool, OfferedTool, Tool, Turn


class ToolCaller:
    """Caller of the tools of one run."""

    def __init__(self, turn: Turn, tools: Sequence[Tool], client_tools: Sequence[ClientTool] = ()) -> None:
        self._turn = turn
        self._of_client = {tool.wire_name for tool in client_tools}
        own = [tool for tool in tools if tool.wire_name not in self._of_client]
        self._names = {tool.wire_name: tool.name for tool in own}
        self._count = 0
        self.tools: Sequence[OfferedTool] = (*own, *client_tools)
        self.is_left_to_client = False
        """True after calls of tools that the client runs: the answer ends with them."""
        self.results: list[ToolResult] = []
        """Results of the last calls."""

    async def act(self, calls: Sequence[ToolCall]) -> AsyncGenerator[Chunk]:
        """Run the requested calls concurrently; yield a note of each call and of its result.

        Calls of the client's tools are only noted, each by the id that the model gave it.
        """
        self.results, numbers = [], []
        for call in (one for one in calls if one.tool in self._of_client):
            self.is_left_to_client = True
            self._count += 1
            name = f"{call.call_id or 'call'}_{self._count}"
            yield Chunk(called(name, call.tool, _given(call)), Channel.TOOLS)
        calls = [call for call in calls if call.tool not in self._of_client]
        for call in calls:
            self._count += 1
            numbers.append(str(self._count))
            yield Chunk(called(numbers[-1], self._name(call), _given(call)), Channel.TOOLS)
        for number, call, (text, ok) in zip(numbers, calls, await self._call_all(calls, numbers), strict=True):
            self.results.append(ToolResult(call, text))
            yield Chunk(answered(number, text, ok=ok, seconds=self._turn.tool_seconds(number)), Channel.TOOLS)

    async def _call_all(self, calls: Sequence[ToolCall], numbers: Sequence[str]) -> list[tuple[str, bool]]:
        if len(calls) < 2:
            return [await self._call(*each) for each in zip(calls, numbers, strict=True)]
        try:
            async with asyncio.TaskGroup() as group:
                each = zip(calls, numbers, strict=True)
                tasks = [group.create_task(self._call(call, at), name=f"tool {call.tool}") for call, at in each]
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _call(self, call: ToolCall, number: str) -> tuple[str, bool]:
        """Return the result and True, or the error message for the model and False."""
        given = _given(call)
        if not isinstance(given, dict):
            return "the arguments are not a JSON object: call it again with arguments that match its schema", False
        try:
            return await self._turn.call_tool(self._name(call), given, call_id=number), True
        except ToolFailed as error:
            return str(error), False

    def _name(self, call: ToolCall) -> str:
        return self._names.get(call.tool, call.tool)


def _given(call: ToolCall) -> Any:
    """Return the parsed arguments, or the text itself if it is not JSON."""
    if not isinstance(call.arguments, str):
        return {} if call.arguments is None else call.arguments
    try:
        return json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return call.arguments
