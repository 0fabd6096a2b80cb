"""Requests of turns to other agents. Concurrent requests are posted together; answers are passed on in RAM."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial

from roost.core.envelopes.effects import SendTask
from roost.core.envelopes.requests import Answered, Request
from roost.core.values.addresses import of_key, unknown
from roost.errors import LimitReached, Unavailable
from roost.ports import Loop
from roost.runtime.context import RuntimeContext
from roost.runtime.ports.notifier import Notifier
from roost.stores.sql.sending import requests as requests_sql

POLL_INTERVAL = 5.0
NOTHING: Mapping[str, str] = {}


class Requests:
    """Batches requests while a write is queued. Any thread may call."""

    def __init__(self, context: RuntimeContext, notifier: Notifier) -> None:
        self._context = context
        self._notifier = notifier
        self._lock = context.host.lock()
        self._batch: list[Request] | None = None
        """Requests in a queued write that has not started."""
        self._waiting: dict[str, Answers] = {}
        """Turns that wait for an answer, by the name of the request."""

    def listen(self, name: str, answers: Answers) -> None:
        self._waiting[name] = answers

    def unlisten(self, name: str) -> None:
        self._waiting.pop(name, None)

    def answered(self, answered: Answered) -> None:
        """Resume the turn that waits for this answer."""
        if (waiting := self._waiting.get(answered.request)) is not None:
            waiting.deliver(answered.request, answered.answer)

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
                requests_sql.ask,
                batch,
                partial(self._close, batch),
                then=partial(self._posted, batch),
                failed=partial(self._failed, batch),
            )
        except Unavailable as error:
            self._failed(batch, error)

    def _close(self, batch: list[Request]) -> None:
        """Close the batch: later requests are written after it."""
        with self._lock:
            if self._batch is batch:
                self._batch = None

    def _posted(self, batch: list[Request], posted: tuple[bool | Answered | LimitReached | None, ...]) -> None:
        """Handle the result on the writer's thread, after the commit."""
        self._notifier.deliver(
            tuple(request.envelope for request, outcome in zip(batch, posted, strict=True) if outcome is True)
        )
        for request, outcome in zip(batch, posted, strict=True):
            if isinstance(outcome, Answered):
                self._notifier.answered(outcome)
            elif isinstance(outcome, LimitReached):
                self._refuse(request, outcome)
            elif not outcome:
                agent_id = of_key(request.envelope.address).agent_id
                self._refuse(request, asyncio.CancelledError() if outcome is None else unknown(agent_id))

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
    """Answers that one turn waits for. Used on its loop; any thread may call `deliver` and `fail`.

    One timer polls for all requests: nearly all are answered before it fires.
    """

    def __init__(self, context: RuntimeContext, requests: Requests, loop: Loop, envelope_id: str) -> None:
        self._context = context
        self._requests = requests
        self._loop = loop
        self._aloop = asyncio.get_running_loop()
        self._envelope_id = envelope_id
        self._open: dict[str, asyncio.Future[Mapping[str, str] | None]] = {}
        self._old: dict[str, asyncio.Future[Mapping[str, str] | None]] = {}
        """Requests that were open when the timer last fired."""
        self._timer: asyncio.TimerHandle | None = None

    def listen(self, name: str) -> None:
        self._open[name] = self._aloop.create_future()
        self._requests.listen(name, self)

    def unlisten(self, name: str) -> None:
        self._requests.unlisten(name)
        self._open.pop(name, None)

    def deliver(self, name: str, answer: Mapping[str, str]) -> None:
        self._loop.call(self._delivered, name, answer)

    def fail(self, name: str, error: BaseException) -> None:
        self._loop.call(self._failed, name, error)

    async def get(self, name: str, number: int, seconds: float, *, in_store: bool) -> Mapping[str, str]:
        """Return the answer, or an empty one after the deadline. `in_store`: the answer may be in the store already."""
        latest, remaining = self._aloop.time() + seconds, seconds
        while True:
            if in_store or remaining <= 0:
                found = await self._context.store.write(
                    requests_sql.answer_to, self._envelope_id, number, remaining <= 0
                )
                if found is not None or remaining <= 0:
                    return NOTHING if found is None else dict(json.loads(found))
            answer = await self._wait(name, remaining)
            if answer is not None:
                return answer
            in_store, self._open[name] = True, self._aloop.create_future()  # listen first, then check, then wait
            remaining = latest - self._aloop.time()

    async def _wait(self, name: str, remaining: float) -> Mapping[str, str] | None:
        """Return the answer, or None when it is time to poll the store."""
        interval = self._context.poll_interval(POLL_INTERVAL)
        if remaining > 2 * interval:
            if self._timer is None:
                self._timer = self._aloop.call_later(interval, self._poll_old)
            return await self._open[name]
        timer = self._aloop.call_later(min(interval, remaining), self._delivered, name, None)
        try:
            return await self._open[name]
        finally:
            timer.cancel()

    def _delivered(self, name: str, answer: Mapping[str, str] | None) -> None:
        future = self._open.get(name)
        if future is not None and not future.done():
            future.set_result(answer)

    def _failed(self, name: str, error: BaseException) -> None:
        future = self._open.get(name)
        if future is not None and not future.done():
            future.set_exception(error)

    def _poll_old(self) -> None:
        """Have requests poll the store that were open at the last call."""
        for name, future in self._old.items():
            if self._open.get(name) is future:
                self._delivered(name, None)
        self._old = dict(self._open)
        interval = self._context.poll_interval(POLL_INTERVAL)
        self._timer = self._aloop.call_later(interval, self._poll_old) if self._open else None
