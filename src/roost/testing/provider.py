"""A provider of models on this machine that says what a test tells it, over HTTP as OpenAI's and Anthropic's do.

    with Provider() as provider:
        provider.plays("Hello ", "there")            # what is said when the model is asked next
        profile = roost.Profile("test", "llm", model="openai:any", base_url=provider.url)

What it was asked is in `provider.asked`. Asked more often than it was told, it says `ok`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Think:
    """Thought before, or between, what is said."""

    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """A tool is called."""

    tool: str
    arguments: dict[str, Any] | str
    call_id: str = "call_1"


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing more comes until this is so."""

    until: Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Cut:
    """The connection breaks off here."""


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes that no provider should send."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Refuse:
    """Another status than 200, before anything is said."""

    status: int
    error: str = "something is wrong"
    code: str = ""
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """How it ends, and what it cost; by itself `stop`, 10 tokens read and 5 said."""

    reason: str = "stop"
    read: int = 10
    said: int = 5


Act = str | Think | Call | Wait | Cut | Raw | Refuse | End

LOOK = 0.002
_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
"""How Anthropic names what OpenAI names so."""


class Provider:
    """A server on a thread of its own, from `with` to the end of it."""

    def __init__(self) -> None:
        self._plays: deque[tuple[Act, ...]] = deque()
        self.asked: list[dict[str, Any]] = []
        """The body of each request."""
        self.headers: list[dict[str, str]] = []
        self.hung_up = 0
        """How often whoever asked has gone before the end."""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over: asyncio.Event
        self._thread = threading.Thread(target=self._run, name="provider", daemon=True)
        self.port = 0

    def plays(self, *acts: Act) -> None:
        """What happens when a model is asked next; called again, when it is asked after that."""
        self._plays.append(acts)

    def forget(self) -> None:
        """What was laid out and has not happened."""
        self._plays.clear()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    # --- the server ------------------------------------------------------------------------------

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._over = asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._over.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up += 1
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; whether the connection can be used again."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
        except asyncio.IncompleteReadError:
            return False
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
        self.asked.append(body)
        self.headers.append(headers)
        acts = self._plays.popleft() if self._plays else ("ok",)
        speak = anthropic if first.split()[1].endswith("/messages") else openai
        if acts and isinstance(acts[0], Refuse):
            writer.write(_refusal(acts[0], speak is anthropic))
            await writer.drain()
            return True
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        gone = asyncio.ensure_future(reader.read(1))  # whoever asks says no more, unless it hangs up
        try:
            async for piece in speak(body, acts, lambda until: self._until(until, gone)):
                if piece is None:
                    return False
                writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                await writer.drain()
        finally:
            gone.cancel()
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return not gone.done()

    async def _until(self, until: Callable[[], bool], gone: asyncio.Future[bytes]) -> None:
        while not until():
            if gone.done():
                raise ConnectionResetError
            await asyncio.sleep(LOOK)


def _refusal(act: Refuse, is_anthropic: bool) -> bytes:
    error = {"message": act.error, "type": act.code or "invalid_request_error", "code": act.code or None}
    body = json.dumps({"type": "error", "error": error} if is_anthropic else {"error": error}).encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), **act.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {act.status} No\r\n{lines}\r\n".encode() + body


Until = Callable[[Callable[[], bool]], Any]


async def _others(act: Act, until: Until) -> AsyncIterator[bytes | None]:
    """What is the same whatever is spoken."""
    if isinstance(act, Wait):
        await until(act.until)
    elif isinstance(act, Cut):
        yield None
    elif isinstance(act, Raw):
        yield act.data


# --- OpenAI's chat completions ----------------------------------------------------------------------


async def openai(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
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
            yield event({"tool_calls": [{"index": calls.index(act), "id": act.call_id, "type": "function",
                                         "function": function}]})  # fmt: skip
        else:
            async for piece in _others(act, until):
                yield piece
    end = end or End("tool_calls" if calls else "stop")
    yield event({}, end.reason)
    usage = {"prompt_tokens": end.read, "completion_tokens": end.said, "total_tokens": end.read + end.said}
    yield b"data: " + json.dumps({**common, "choices": [], "usage": usage}).encode() + b"\n\ndata: [DONE]\n\n"


# --- Anthropic's messages ---------------------------------------------------------------------------


async def anthropic(body: dict[str, Any], acts: tuple[Act, ...], until: Until) -> AsyncIterator[bytes | None]:
    end = next((act for act in acts if isinstance(act, End)), None)
    end = end or End("tool_calls" if any(isinstance(act, Call) for act in acts) else "stop")

    def event(kind: str, **data: Any) -> bytes:
        return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()

    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": body.get("model", ""),
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": end.read, "output_tokens": 0},
    }  # fmt: skip
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
    """The block that an act belongs to, and what it adds to it."""
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
