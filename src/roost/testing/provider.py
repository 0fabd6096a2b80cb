"""Local fake of a model provider with scripted answers, in the protocols of OpenAI, Anthropic and Google.

    with Provider() as provider:
        provider.plays("Hello ", "there")            # the answer to the next request
        profile = roost.Profile("test", "llm", model="openai:any", base_url=provider.url)

`provider.asked` holds the requests. After the end of the script it answers `ok`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from roost.testing.provider_streams import Act, Call, Cut, End, Raw, Refuse, Think, Wait, Whole, refusal, spoken, whole

__all__ = ["Act", "Call", "Cut", "End", "Provider", "Raw", "Refuse", "Think", "Wait", "Whole"]


LOOK = 0.002


class Provider:
    """Server on its own thread, which runs inside of `with`."""

    def __init__(self) -> None:
        self._plays: deque[tuple[Act, ...]] = deque()
        self.asked: list[dict[str, Any]] = []
        """The body of each request."""
        self.headers: list[dict[str, str]] = []
        self.bytes_at_once = 1 << 20
        """Bytes sent in one write, regardless of event boundaries."""
        self.connections = 0
        """Number of connections so far."""
        self.hung_up = 0
        """Number of clients that disconnected before the end."""
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._over: asyncio.Event
        self._open: set[asyncio.StreamWriter] = set()
        self._thread = threading.Thread(target=self._run, name="provider", daemon=True)
        self.port = 0

    def plays(self, *acts: Act) -> None:
        """Script the answer to the next request; further calls script the following ones."""
        self._plays.append(acts)

    def forget(self) -> None:
        """Drop scripted answers that were not used."""
        self._plays.clear()

    def hang_up(self) -> None:
        """Close all connections, like a restarting provider."""
        ended = threading.Event()
        for writer in [*self._open]:
            self._loop.call_soon_threadsafe(writer.close)
        self._loop.call_soon_threadsafe(ended.set)
        ended.wait(10)

    @property
    def open(self) -> int:
        """Return the number of open connections."""
        return len(self._open)

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
        self.connections += 1
        self._open.add(writer)
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.hung_up += 1
        except asyncio.CancelledError:
            pass
        finally:
            self._open.discard(writer)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read one request and answer it; return whether the connection can be reused."""
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
        path = first.split()[1].partition("?")[0]
        if acts and isinstance(acts[0], Cut):
            return False
        if acts and isinstance(acts[0], Refuse | Whole):
            writer.write(refusal(acts[0], path) if isinstance(acts[0], Refuse) else whole(acts[0]))
            await writer.drain()
            return True
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        gone = asyncio.ensure_future(reader.read(1))  # the client sends nothing more, unless it disconnects
        try:
            async for piece in spoken(path)(body, acts, lambda until: self._until(until, gone)):
                if piece is None:
                    return False
                for start in range(0, len(piece), self.bytes_at_once):
                    part = piece[start : start + self.bytes_at_once]
                    writer.write(b"%x\r\n%s\r\n" % (len(part), part))
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
