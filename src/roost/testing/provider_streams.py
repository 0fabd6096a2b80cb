"""Streams in the protocols of OpenAI (both), Anthropic and Google, built from a script.

A script consists of texts and of the classes below.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Think:
    """Thinking before or between texts."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """Call of a tool."""

    tool: str
    arguments: dict[str, Any] | str
    call_id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Wait:
    """Pause until a condition holds."""

    until: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """Broken connection; as the first act, without any response."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Raw bytes, such as no provider should send."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refuse:
    """Error response with another status than 200."""

    status: int
    error: str = "something is wrong"
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Whole:
    """Whole reply as JSON, although a stream was requested."""

    body: Any


@dataclass(frozen=True, slots=True)
class End:
    """Finish reason and token usage; by default `stop`, 10 input and 5 output tokens."""

    reason: str = "stop"
    read: int = 10
    said: int = 5


Act = str | Think | Call | Wait | Cut | Raw | Refuse | Whole | End


_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
"""Anthropic's names of OpenAI's finish reasons."""

Until = Callable[[Callable[[], bool]], Any]


async def _others(act: Act, until: Until) -> AsyncIterator[bytes | None]:
    """Yield the bytes of acts that are the same in all protocols."""
    if isinstance(act, Wait):
        await until(act.until)
    elif isinstance(act, Cut):
        yield None
    elif isinstance(act, Raw):
        yield act.data


# --- OpenAI's chat completions ----------------------------------------------------------------------


async def completions(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
    end = next((act for act in acts if isinstance(act, End)), None)
    calls = [act for act in acts if isinstance(act, Call)]
    common = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", "")}

    def event(delta: dict[str, Any], reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return b"data: " + json.dumps({**common, "choices": [choice]}).encode() + b"\n\n"

    yield event({"role": "assistant", "content": ""})
    for act in acts:
        if isinstance(act, str):
            yield event({"content": act})
        elif isinstance(act, Think):
            yield event({"reasoning_content": act.text})
        elif isinstance(act, Call):
            given = act.arguments if isinstance(act.arguments, str) else json.dumps(act.arguments)
            function = {"name": act.tool, "arguments": given}
            yield event(
                {
                    "tool_calls": [
                        {"index": calls.index(act), "id": act.call_id, "type": "function", "function": function}
                    ]
                }
            )
        else:
            async for piece in _others(act, until):
                yield piece
    end = end or End("tool_calls" if calls else "stop")
    yield event({}, end.reason)
    usage = {"prompt_tokens": end.read, "completion_tokens": end.said, "total_tokens": end.read + end.said}
    yield b"data: " + json.dumps({**common, "choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"


# --- OpenAI's responses ----------------------------------------------------------------------------


async def responses(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
    end = next((act for act in acts if isinstance(act, End)), None) or End()
    number = -1
    whole: dict[str, Any] = {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": body.get("model", ""),
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "status": "in_progress",
    }

    def event(kind: str, **data: Any) -> bytes:
        nonlocal number
        number += 1
        return f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': number, **data})}\n\n".encode()

    yield event("response.created", response=whole)
    index, text = -1, False
    for act in acts:
        if isinstance(act, str):
            if not text:
                index, text = index + 1, True
                item = {
                    "id": f"msg_{index}",
                    "type": "message",
                    "role": "assistant",
                    "content": [],
                    "status": "in_progress",
                }
                yield event("response.output_item.added", output_index=index, item=item)
            place = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
            yield event("response.output_text.delta", delta=act, logprobs=[], **place)
        elif isinstance(act, Call):
            index, text = index + 1, False
            given = act.arguments if isinstance(act.arguments, str) else json.dumps(act.arguments)
            call = {"id": f"fc_{index}", "type": "function_call", "call_id": act.call_id, "name": act.tool}
            started = {**call, "arguments": "", "status": "in_progress"}
            yield event("response.output_item.added", output_index=index, item=started)
            yield event("response.function_call_arguments.delta", item_id=call["id"], output_index=index, delta=given)
            done = {**call, "arguments": given, "status": "completed"}
            yield event("response.output_item.done", output_index=index, item=done)
        else:
            async for piece in _others(act, until):
                yield piece
    usage = {
        "input_tokens": end.read,
        "output_tokens": end.said,
        "total_tokens": end.read + end.said,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    whole |= {"status": "completed", "usage": usage}
    if end.reason == "length":
        whole |= {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        yield event("response.incomplete", response=whole)
    else:
        yield event("response.completed", response=whole)


# --- Google's ---------------------------------------------------------------------------------------


async def google(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
    end = next((act for act in acts if isinstance(act, End)), None) or End()
    usage = {"promptTokenCount": end.read, "candidatesTokenCount": end.said, "totalTokenCount": end.read + end.said}

    def event(part: dict[str, Any] | None, reason: str | None = None) -> bytes:
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": [part] if part else []}, "index": 0}
        if reason:
            candidate["finishReason"] = reason
        payload = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "any", "responseId": "r1"}
        return b"data: " + json.dumps(payload).encode() + b"\r\n\r\n"

    for act in acts:
        if isinstance(act, str):
            yield event({"text": act})
        elif isinstance(act, Think):
            yield event({"text": act.text, "thought": True})
        elif isinstance(act, Call):
            yield event({"functionCall": {"name": act.tool, "args": act.arguments}})
        else:
            async for piece in _others(act, until):
                yield piece
    reasons = {"stop": "STOP", "length": "MAX_TOKENS", "content_filter": "SAFETY"}
    yield event(None, reasons[end.reason])


# --- Anthropic's messages ---------------------------------------------------------------------------


async def anthropic(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
    end = next((act for act in acts if isinstance(act, End)), None)
    end = end or End("tool_calls" if any(isinstance(act, Call) for act in acts) else "stop")

    def event(kind: str, **data: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": body.get("model", ""),
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": end.read, "output_tokens": 0},
    }
    yield event("message_start", message=message)
    index, open_kind = -1, ""
    for act in acts:
        block, delta = _block(act)
        if block is None or delta is None:
            async for piece in _others(act, until):
                yield piece
            continue
        if block["type"] != open_kind or block["type"] == "tool_use":
            if open_kind:
                yield event("content_block_stop", index=index)
            index, open_kind = index + 1, block["type"]
            yield event("content_block_start", index=index, content_block=block)
        yield event("content_block_delta", index=index, delta=delta)
    if open_kind:
        yield event("content_block_stop", index=index)
    reason = {"stop_reason": _REASONS.get(end.reason, end.reason), "stop_sequence": None}
    yield event("message_delta", delta=reason, usage={"output_tokens": end.said})
    yield event("message_stop")


def _block(act: Act) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """Return the content block of an act, and the delta that it adds."""
    if isinstance(act, str):
        return {"type": "text", "text": ""}, {"type": "text_delta", "text": act}
    if isinstance(act, Think):
        return {"type": "thinking", "thinking": "", "signature": ""}, {"type": "thinking_delta", "thinking": act.text}
    if isinstance(act, Call):
        given = act.arguments if isinstance(act.arguments, str) else json.dumps(act.arguments)
        return (
            {"type": "tool_use", "id": act.call_id, "name": act.tool, "input": {}},
            {"type": "input_json_delta", "partial_json": given},
        )
    return None, None


def spoken(path: str) -> Callable[[dict[str, Any], tuple[Act, ...], Until], AsyncIterator[bytes | None]]:
    """Return the protocol of a request path."""
    if path.endswith("/messages"):
        return anthropic
    if path.endswith("/responses"):
        return responses
    return google if ":streamGenerateContent" in path else completions


def refusal(act: Refuse, path: str) -> bytes:
    error: dict[str, Any] = {
        "message": act.error,
        "type": act.code or "invalid_request_error",
        "code": act.code or None,
    }
    if ":streamGenerateContent" in path:
        error = {"message": act.error, "code": act.status, "status": act.code or "INVALID_ARGUMENT"}
    payload = {"type": "error", "error": error} if path.endswith("/messages") else {"error": error}
    return _reply(f"{act.status} No", payload, act.headers)


def whole(act: Whole) -> bytes:
    return _reply("200 OK", act.body, {})


def _reply(status: str, payload: Any, more: dict[str, str]) -> bytes:
    body = json.dumps(payload).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body
