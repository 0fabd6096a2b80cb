"""Conversion of dialogues and answers to and from pydantic-ai."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from roost.brains.chat.dialogue import Dialogue, ModelAnswer, ToolCall, ToolResult, Utterance
from roost.ports import OfferedTool


def messages_of(dialogue: Dialogue) -> list[ModelMessage]:
    """Return the messages; consecutive entries for the model form one request."""
    found: list[ModelMessage] = []
    for entry in dialogue.entries:
        if isinstance(entry, ModelAnswer):
            found.append(_response(entry))
        elif found and isinstance(last := found[-1], ModelRequest):
            found[-1] = replace(last, parts=[*last.parts, _part(entry)])
        else:
            found.append(ModelRequest([_part(entry)], instructions=dialogue.instructions))
    return found


def answer_of(response: ModelResponse) -> ModelAnswer:
    text = "".join(part.content for part in response.parts if isinstance(part, TextPart))
    calls = [
        ToolCall(part.tool_name, part.args, part.tool_call_id)
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    return ModelAnswer(text, tuple(calls), response.finish_reason == "length", response.usage.total_tokens, response)


def offered(tools: Sequence[OfferedTool]) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.wire_name, parameters_json_schema=tool.parameters, description=tool.description)
            for tool in tools
        ]
    )


def _response(answer: ModelAnswer) -> ModelResponse:
    if isinstance(answer.own, ModelResponse):
        return answer.own
    said: list[ModelResponsePart] = [TextPart(answer.text)] if answer.text else []
    return ModelResponse([*said, *(ToolCallPart(call.tool, call.arguments, call.call_id) for call in answer.calls)])


def _part(entry: Utterance | ToolResult) -> ModelRequestPart:
    if isinstance(entry, Utterance):
        images = [BinaryContent(image.data, media_type=image.media_type) for image in entry.images]
        return UserPromptPart([entry.text, *images] if images else entry.text)
    return ToolReturnPart(entry.call.tool, entry.text, entry.call.call_id)
