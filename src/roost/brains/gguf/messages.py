"""A dialogue in the words of the protocol that xllamacpp speaks, and its answers in ours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from roost.brains.chat.dialogue import Answer, Called, Dialogue, Returned, Said
from roost.ports import Tool

Told = dict[str, Any]


def messages_of(dialogue: Dialogue, *, with_tools: bool) -> list[Told]:
    """A person begins, and the model and people take turns: many models know it only so."""
    found: list[Told] = []
    for entry in dialogue.entries:
        match entry:
            case Said(text):
                _say(found, "user", text)
            case Answer(text, calls) if found and calls and with_tools:
                _say(found, "assistant", text)["tool_calls"] = [_call(call) for call in calls]
            case Answer(text) if found and text:
                _say(found, "assistant", text)
            case Returned(call, text) if found and with_tools:
                found.append({"role": "tool", "tool_call_id": call.call_id, "name": call.tool, "content": text})
    first = [{"role": "system", "content": dialogue.instructions}] if dialogue.instructions else []
    return [*first, *found]


def offered(tools: Iterable[Tool]) -> list[Told]:
    return [
        {
            "type": "function",
            "function": {"name": tool.wire_name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def join(calls: list[Called], deltas: Iterable[Told]) -> None:
    """Add pieces of calls to those that came before."""
    for delta in deltas:
        at, function = delta.get("index", 0), delta.get("function", {})
        while len(calls) <= at:
            calls.append(Called("", "", f"call_{len(calls) + 1}"))
        known = calls[at]
        calls[at] = Called(
            known.tool + (function.get("name") or ""),
            known.arguments + (function.get("arguments") or ""),
            delta.get("id") or known.call_id,
        )


def _say(found: list[Told], role: str, text: str) -> Told:
    """What one side says in several messages becomes one."""
    if found and found[-1]["role"] == role and "tool_calls" not in found[-1]:
        last = found[-1]
        last["content"] = "\n\n".join(filter(None, (last["content"], text)))
        return last
    found.append({"role": role, "content": text})
    return found[-1]


def _call(call: Called) -> Told:
    given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    return {"id": call.call_id, "type": "function", "function": {"name": call.tool, "arguments": given}}
