"""Network between nodes and their servers, on loopback: each direction of each link can be cut."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Opened = Callable[[], Coroutine[Any, Any, Streams]]
REQUESTS, REPLIES = DIRECTIONS = ("requests", "replies")


class Link:
    """Port at which one node reaches one server. A cut holds bytes back and closes nothing, as a network does.

    What was held arrives when the link is healed, however late. New connections are accepted and get no answer.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, opened: Opened, dice: random.Random | None = None) -> None:
        self._loop = loop
        self._opened = opened
        self._dice = dice
        self.lost = 0
        """Messages of NATS that were lost."""
        self._gates = _gates()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0

    def cut(self, *directions: str) -> None:
        """Cut these directions; both by default."""
        self._loop.call_soon_threadsafe(self._set, directions or DIRECTIONS, False)

    def heal(self) -> None:
        self._loop.call_soon_threadsafe(self._set, DIRECTIONS, True)

    def drop(self) -> None:
        """Forget the open connections without a word to their ends, as a firewall does; new ones work."""
        self._loop.call_soon_threadsafe(self._drop)

    async def listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    def _drop(self) -> None:
        self._set(DIRECTIONS, False)
        self._gates = _gates()

    def _set(self, directions: tuple[str, ...], is_open: bool) -> None:
        for direction in directions:
            gate = self._gates[direction]
            gate.set() if is_open else gate.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            source, sink = await self._opened()
        except OSError:  # the server is down
            writer.close()
            return
        self._writers |= {writer, sink}
        try:
            gates = self._gates
            await asyncio.gather(
                _pass_on(reader, sink, gates[REQUESTS]),
                self._lose(source, writer, gates[REPLIES], self._dice)
                if self._dice is not None
                else _pass_on(source, writer, gates[REPLIES]),
            )
        except asyncio.CancelledError:
            return  # the test has ended
        finally:
            self._writers -= {writer, sink}

    async def _lose(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event, dice: random.Random
    ) -> None:
        """Pass on what a NATS server sends, but lose 30 % of the messages, double 10 % and delay 20 % of them."""
        with suppress(OSError, asyncio.IncompleteReadError):
            while line := await reader.readline():
                is_message = line.startswith((b"MSG ", b"HMSG "))
                whole = line + (await reader.readexactly(int(line.split()[-1]) + 2) if is_message else b"")
                await gate.wait()
                chance = dice.random() if is_message else 1.0
                self.lost += chance < 0.3
                for _ in range((chance >= 0.3) + (0.3 <= chance < 0.4)):
                    delay = dice.random() * 0.2 if 0.3 <= chance < 0.6 else 0.0
                    self._loop.call_later(delay, _write, writer, whole) if delay else _write(writer, whole)
                await writer.drain()
        await gate.wait()
        writer.close()


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    if not writer.is_closing():
        writer.write(data)


def _gates() -> dict[str, asyncio.Event]:
    made = {direction: asyncio.Event() for direction in DIRECTIONS}
    for gate in made.values():
        gate.set()
    return made


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: asyncio.Event) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            await gate.wait()
            writer.write(data)
            await writer.drain()
    await gate.wait()  # the end of a connection is not seen through a cut either
    writer.close()


class Network:
    """Links on an event loop of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._links: list[Link] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="network")
        self._thread.start()

    def link_to_port(self, port: int, dice: random.Random | None = None) -> Link:
        """Link to a server; with dice, one of NATS that loses, doubles and delays messages."""
        return self._link(lambda: asyncio.open_connection("127.0.0.1", port), dice)

    def link_to_socket(self, path: str) -> Link:
        return self._link(lambda: asyncio.open_unix_connection(path))

    def _link(self, opened: Opened, dice: random.Random | None = None) -> Link:
        link = Link(self._loop, opened, dice)
        self._links.append(link)
        asyncio.run_coroutine_threadsafe(link.listen(), self._loop).result(10)
        return link

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for link in self._links:
            link.close()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextmanager
def network() -> Iterator[Network]:
    made = Network()
    try:
        yield made
    finally:
        made.close()
