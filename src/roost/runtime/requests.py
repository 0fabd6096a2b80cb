"""Requests: what turns ask other agents. Those asked at once are posted together, and answers come from memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from roost.core.addresses import of_key, unknown
from roost.core.envelopes import Answered, Request, SendTask
from roost.errors import Unavailable
from roost.ports import Pending, Tx
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.runtime.hall import Hall

SLOW_LOOK = 5.0
NOTHING: Mapping[str, str] = {}


class Requests:
    """Any thread may call. Requests that come while others wait to be written are written with those."""

    def __init__(self, shop: Shop, hall: Hall) -> None:
        self._shop = shop
        self._hall = hall
        self._ops = shop.statements.inbox
        self._lock = shop.host.lock()
        self._batch: list[Request] | None = None
        """Handed to the store, and not begun there."""
        self._bells: dict[str, Pending[Mapping[str, str]]] = {}
        """Turns here that wait for an answer, by the id of what they asked."""

    def listen(self, name: str) -> Pending[Mapping[str, str]]:
        self._bells[name] = bell = self._shop.host.pending()
        return bell

    def unlisten(self, name: str) -> None:
        self._bells.pop(name, None)

    def answered(self, answered: Answered) -> None:
        """It is written; whoever waits for it here need not look."""
        if (bell := self._bells.get(answered.request)) is not None:
            bell.set(answered.answer)

    async def answer(
        self, bell: Pending[Mapping[str, str]], envelope_id: str, number: int, seconds: float, *, look: bool
    ) -> Mapping[str, str]:
        """The answer, or nothing after so many seconds; then it is late. `look`: it may be there already."""
        clock = self._shop.host.clock
        latest = clock.monotonic() + seconds
        while True:
            left = latest - clock.monotonic()
            if look or left <= 0:
                found = await self._shop.store.write(self._ops.answer_to, envelope_id, number, left <= 0)
                if found is not None or left <= 0:
                    return NOTHING if found is None else dict(json.loads(found))
            if await bell.within(min(SLOW_LOOK, left)):
                return await bell
            look = True

    # --- posting ---------------------------------------------------------------------------------

    def post(self, requests: list[Request]) -> None:
        with self._lock:
            batch = self._batch
            if batch is not None:
                batch += requests
                return
            self._batch = batch = requests
        try:
            self._shop.store.write(
                self._ask, batch, then=partial(self._posted, batch), failed=partial(self._failed, batch)
            )
        except Unavailable as error:
            self._failed(batch, error)

    def _ask(self, tx: Tx, batch: list[Request]) -> tuple[bool | Answered | None, ...]:
        self._close(batch)
        count: dict[str, int] = {}
        for request in batch:
            count[request.envelope.address] = count.get(request.envelope.address, 0) + 1
        full = frozenset(address for address, more in count.items() if not self._hall.has_room(address, more))
        return self._ops.ask(tx, tuple(batch), full)

    def _close(self, batch: list[Request]) -> None:
        """Whatever is asked from now on is written after these."""
        with self._lock:
            if self._batch is batch:
                self._batch = None

    def _posted(self, batch: list[Request], posted: tuple[bool | Answered | None, ...]) -> None:
        """On the writer's thread, after the commit."""
        self._hall.deliver(tuple(one.envelope for one, there in zip(batch, posted, strict=True) if there is True))
        for request, there in zip(batch, posted, strict=True):
            if isinstance(there, Answered):
                self._hall.answer(there)
            elif not there:
                agent_id = of_key(request.envelope.address).agent_id
                self._refuse(request, asyncio.CancelledError() if there is None else unknown(agent_id))

    def _failed(self, batch: list[Request], error: Exception) -> None:
        self._close(batch)
        self._hall.missed(SendTask(request.envelope) for request in batch)
        for request in batch:
            self._refuse(request, error)

    def _refuse(self, request: Request, error: BaseException) -> None:
        if (bell := self._bells.get(str(request.envelope.ask))) is not None:
            bell.fail(error)
