"""Requests: what turns ask other agents. Those asked at once are posted together, and answers come from memory."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.requests import Answered, Request
from roost.core.values.addresses import of_key, unknown
from roost.errors import LimitReached, Unavailable
from roost.ports import Loop, Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.sending import requests as requests_sql

SLOW_LOOK = 5.0
NOTHING: Mapping[str, str] = {}


class Requests:
    """Any thread may call. Requests that come while others wait to be written are written with those."""

    def __init__(self, context: RuntimeContext, notifier: Notifier) -> None:
        self._context = context
        self._notifier = notifier
        self._lock = context.host.lock()
        self._batch: list[Request] | None = None
        """Handed to the store, and not begun there."""
        self._waiting: dict[str, Answers] = {}
        """Turns here that wait for an answer, by the name of what they asked."""

    def listen(self, name: str, answers: Answers) -> None:
        self._waiting[name] = answers

    def unlisten(self, name: str) -> None:
        self._waiting.pop(name, None)

    def answered(self, answered: Answered) -> None:
        """Resume the turn that waits for this answer."""
        if (waiting := self._waiting.get(answered.request)) is not None:
            waiting.tell(answered.request, answered.answer)

    # --- posting ---------------------------------------------------------------------------------

    def post(self, requests: list[Request]) -> None:
        with self._lock:
            batch = self._batch
            if batch is not None:
                batch += requests
                return
            self._batch = batch = requests
        try:
            self._context.store.write(
                self._ask, batch, then=partial(self._posted, batch), failed=partial(self._failed, batch)
            )
        except Unavailable as error:
            self._failed(batch, error)

    def _ask(self, tx: Tx, batch: list[Request]) -> tuple[bool | Answered | LimitReached | None, ...]:
        self._close(batch)
        return requests_sql.ask(tx, tuple(batch))

    def _close(self, batch: list[Request]) -> None:
        """Whatever is asked from now on is written after these."""
        with self._lock:
            if self._batch is batch:
                self._batch = None

    def _posted(self, batch: list[Request], posted: tuple[bool | Answered | LimitReached | None, ...]) -> None:
        """On the writer's thread, after the commit."""
        self._notifier.deliver(tuple(one.envelope for one, there in zip(batch, posted, strict=True) if there is True))
        for request, there in zip(batch, posted, strict=True):
            if isinstance(there, Answered):
                self._notifier.answered(there)
            elif isinstance(there, LimitReached):
                self._refuse(request, there)
            elif not there:
                agent_id = of_key(request.envelope.address).agent_id
                self._refuse(request, asyncio.CancelledError() if there is None else unknown(agent_id))

    def _failed(self, batch: list[Request], error: Exception) -> None:
        self._close(batch)
        self._notifier.missed(SendTask(request.envelope) for request in batch)
        for request in batch:
            self._refuse(request, error)

    def _refuse(self, request: Request, error: BaseException) -> None:
        name = str(request.envelope.ask)
        if (waiting := self._waiting.get(name)) is not None:
            waiting.fail(name, error)


class Answers:
    """Answers that one turn waits for; used on its loop. Any thread may call `tell` and `fail`.

    One timer serves all that take long, since nearly all are answered long before that.
    """

    def __init__(self, context: RuntimeContext, requests: Requests, loop: Loop, envelope_id: str) -> None:
        self._context = context
        self._requests = requests
        self._loop = loop
        self._aloop = asyncio.get_running_loop()
        self._envelope_id = envelope_id
        self._open: dict[str, asyncio.Future[Mapping[str, str] | None]] = {}
        self._old: dict[str, asyncio.Future[Mapping[str, str] | None]] = {}
        """Those that were there when it was last looked at how long they wait."""
        self._timer: asyncio.TimerHandle | None = None

    def listen(self, name: str) -> None:
        self._open[name] = self._aloop.create_future()
        self._requests.listen(name, self)

    def unlisten(self, name: str) -> None:
        self._requests.unlisten(name)
        self._open.pop(name, None)

    def tell(self, name: str, answer: Mapping[str, str]) -> None:
        self._loop.call(self._told, name, answer)

    def fail(self, name: str, error: BaseException) -> None:
        self._loop.call(self._failed, name, error)

    async def get(self, name: str, number: int, seconds: float, *, look: bool) -> Mapping[str, str]:
        """Return the answer, or nothing when the time is over. `look`: it may be in the store already."""
        latest, left = self._aloop.time() + seconds, seconds
        while True:
            if look or left <= 0:
                found = await self._context.store.write(requests_sql.answer_to, self._envelope_id, number, left <= 0)
                if found is not None or left <= 0:
                    return NOTHING if found is None else dict(json.loads(found))
            answer = await self._within(name, left)
            if answer is not None:
                return answer
            look, self._open[name] = True, self._aloop.create_future()  # listen first, then look, then wait
            left = latest - self._aloop.time()

    async def _within(self, name: str, left: float) -> Mapping[str, str] | None:
        """Return the answer; None: time for a poll of the store."""
        if left > 2 * SLOW_LOOK:
            if self._timer is None:
                self._timer = self._aloop.call_later(SLOW_LOOK, self._remind)
            return await self._open[name]
        timer = self._aloop.call_later(min(SLOW_LOOK, left), self._told, name, None)
        try:
            return await self._open[name]
        finally:
            timer.cancel()

    def _told(self, name: str, answer: Mapping[str, str] | None) -> None:
        future = self._open.get(name)
        if future is not None and not future.done():
            future.set_result(answer)

    def _failed(self, name: str, error: BaseException) -> None:
        future = self._open.get(name)
        if future is not None and not future.done():
            future.set_exception(error)

    def _remind(self) -> None:
        """Have the requests poll that waited already at the last call."""
        for name, future in self._old.items():
            if self._open.get(name) is future:
                self._told(name, None)
        self._old = dict(self._open)
        self._timer = self._aloop.call_later(SLOW_LOOK, self._remind) if self._open else None
