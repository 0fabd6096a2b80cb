"""The hands of a model: the tools it may call, and what came of its calls."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from pydantic_ai.messages import ModelResponse, ToolCallPart, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from roost.core.notes import Channel, answered, called
from roost.errors import ToolFailed
from roost.ports import Chunk, Turn


class Hands:
    """Belongs to one run."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._names = {tool.wire_name: tool.name for tool in turn.tools}
        self._count = 0
        self.offered = ModelRequestParameters(
            function_tools=[
                ToolDefinition(name=t.wire_name, parameters_json_schema=t.parameters, description=t.description)
                for t in turn.tools
            ]
        )
        self.results: list[ToolReturnPart] = []
        """Of what was called last."""

    async def act(self, response: ModelResponse) -> AsyncGenerator[Chunk]:
        """Call the tools it asks for, all at once, and note each call and what came of it."""
        wanted = [part for part in response.parts if isinstance(part, ToolCallPart)]
        self.results, numbers = [], []
        for part in wanted:
            self._count += 1
            numbers.append(str(self._count))
            yield Chunk(called(numbers[-1], self._name(part), _arguments(part)), Channel.TOOLS)
        for number, part, (text, ok) in zip(numbers, wanted, await self._call_all(wanted), strict=True):
            self.results.append(ToolReturnPart(part.tool_name, text, part.tool_call_id))
            yield Chunk(answered(number, text, ok=ok), Channel.TOOLS)

    async def _call_all(self, wanted: list[ToolCallPart]) -> list[tuple[str, bool]]:
        if len(wanted) < 2:
            return [await self._call(part) for part in wanted]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._call(part), name=f"tool {part.tool_name}") for part in wanted]
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from None
        return [task.result() for task in tasks]

    async def _call(self, part: ToolCallPart) -> tuple[str, bool]:
        """What it gave, or why it gave nothing, which the model is told too."""
        try:
            given = part.args_as_dict(raise_if_invalid=True)
        except ValueError as error:
            return f"the arguments are no JSON object ({error}): call it again with what its schema asks for", False
        try:
            return await self._turn.call_tool(self._name(part), given, call_id=part.tool_call_id), True
        except ToolFailed as error:
            return str(error), False

    def _name(self, part: ToolCallPart) -> str:
        return self._names.get(part.tool_name, part.tool_name)


def _arguments(part: ToolCallPart) -> Any:
    """As they were given, be they what they may."""
    try:
        return part.args_as_dict(raise_if_invalid=True)
    except ValueError:
        return part.args
