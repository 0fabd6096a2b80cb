"""A lease that this process renews itself, through its store. It ends with the process only after its whole length."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from roost.core.cluster.nodes import LeaseTimes, NodeLoad
from roost.errors import Unavailable
from roost.ports import Host, Loop, Store
from roost.stores.sql import nodes

log = logging.getLogger("roost.cluster")


class StoreLease:
    """Has a loop of its own. `times` are its length, the time between renewals, and the margin before its end."""

    def __init__(self, host: Host, store: Store, node: str, times: LeaseTimes) -> None:
        self._host = host
        self._store = store
        self._node = node
        self._times = times
        self._deadline = host.clock.monotonic() + times.length - times.margin
        self._closing = False
        self._loop: Loop | None = None
        self._bell: asyncio.Event | None = None

    def start(self, load: Callable[[], NodeLoad]) -> None:
        async def main(loop: Loop) -> None:
            self._bell = asyncio.Event()
            while not self._closing:
                await self._renew(load())
                await self._pause()

        self._loop = self._host.start_loop("roost-lease", main, lambda *_: None)

    def remaining(self) -> float:
        return self._deadline - self._host.clock.monotonic()

    async def close(self) -> None:
        self._closing = True
        if self._loop is not None:
            self._loop.call(self._ring)
            if await self._loop.over.within(5.0):
                self._loop.join()

    async def _renew(self, load: NodeLoad) -> None:
        sent = self._host.clock.monotonic()
        try:
            now = await self._store.write(nodes.renew, self._node, self._times.length, load)
        except Unavailable as error:
            log.warning("store unavailable, the lease of this node is not renewed: %s", error)
            return
        self._deadline = sent + self._times.length - self._times.margin if now is not None else sent

    async def _pause(self) -> None:
        assert self._bell is not None
        timer = asyncio.get_running_loop().call_later(self._times.renewal, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    def _ring(self) -> None:
        if self._bell is not None:
            self._bell.set()
