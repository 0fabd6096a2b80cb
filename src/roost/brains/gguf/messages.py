"""Conversion of dialogues and answers to and from the protocol of xllamacpp."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from roost.brains.chat.dialogue import Dialogue, ModelAnswer, ToolCall, ToolResult, Utterance
from roost.ports import OfferedTool

JsonObject = dict[str, Any]
CHOOSE = "Before you answer, call one of these tools: say which, and with what arguments, as JSON."


def messages_of(dialogue: Dialogue, *, with_tools: bool, in_words: bool = False) -> list[JsonObject]:
    """Return the messages; user and model alternate, starting with the user, as many models require.

    `in_words`: tool results are messages of the user.
    """
    found: list[JsonObject] = []
    for entry in dialogue.entries:
        match entry:
            case Utterance(text):
                _say(found, "user", text)
            case ToolResult(call, text) if in_words:
                _say(found, "user", f"[{call.tool} says: {text}]")
            case ModelAnswer(text, calls) if found and calls and with_tools and not in_words:
                _say(found, "assistant", text)["tool_calls"] = [_call(call) for call in calls]
            case ModelAnswer(text) if found and text:
                _say(found, "assistant", text)
            case ToolResult(call, text) if found and with_tools:
                found.append({"role": "tool", "tool_call_id": call.call_id, "name": call.tool, "content": text})
    first = [{"role": "system", "content": dialogue.instructions}] if dialogue.instructions else []
    return [*first, *found]


def offered(tools: Iterable[OfferedTool]) -> list[JsonObject]:
    return [
        {
            "type": "function",
            "function": {"name": tool.wire_name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def choosing(tools: Sequence[OfferedTool], messages: Sequence[JsonObject]) -> JsonObject:
    """Return options that force a tool call of a model whose template has no tools: prompt and grammar."""
    schemas = [copy.deepcopy(tool.parameters) for tool in tools]
    shared = {name: definition for schema in schemas for name, definition in schema.pop("$defs", {}).items()}
    choices = [
        {
            "type": "object",
            "properties": {"tool": {"const": tool.wire_name}, "arguments": schema},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool, schema in zip(tools, schemas, strict=True)
    ]
    instructions = "\n".join([CHOOSE, *(json.dumps(offer["function"], ensure_ascii=False) for offer in offered(tools))])
    before = messages[0]["content"] if messages and messages[0]["role"] == "system" else ""
    first = {"role": "system", "content": f"{before}\n\n{instructions}".strip()}
    schema = {"type": "json_schema", "json_schema": {"schema": {"anyOf": choices, "$defs": shared}}}
    return {"messages": [first, *messages[1 if before else 0 :]], "response_format": schema}


def chosen(text: str) -> ToolCall:
    """Return the call that the model wrote. A truncated one has invalid arguments, which are reported to the model."""
    try:
        read = json.loads(text)
        return ToolCall(read["tool"], read["arguments"], "call_1")
    except (ValueError, RecursionError, KeyError, TypeError):
        named = re.search(r'"tool":\s*"([^"]*)"', text)
        return ToolCall(named[1] if named else "", text, "call_1")


def join(calls: list[ToolCall], deltas: Iterable[JsonObject]) -> None:
    """Add deltas of calls to earlier ones."""
    for delta in deltas:
        at, function = delta.get("index", 0), delta.get("function", {})
        while len(calls) <= at:
            calls.append(ToolCall("", "", f"call_{len(calls) + 1}"))
        known = calls[at]
        calls[at] = ToolCall(
            known.tool + (function.get("name") or ""),
            known.arguments + (function.get("arguments") or ""),
            delta.get("id") or known.call_id,
        )


def _say(found: list[JsonObject], role: str, text: str) -> JsonObject:
    """Append a message; join consecutive messages of the same role."""
    if found and found[-1]["role"] == role and "tool_calls" not in found[-1]:
        last = found[-1]
        last["content"] = "\n\n".join(filter(None, (last["content"], text)))
        return last
    found.append({"role": role, "content": text})
    return found[-1]


def _call(call: ToolCall) -> JsonObject:
    given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": given}}
