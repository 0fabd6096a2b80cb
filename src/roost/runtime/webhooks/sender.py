"""Sender: posts pending deliveries until they arrive, are given up, or their webhook is paused.

Deliveries are sent at least once, and in no order: one that fails does not delay others. What is pending is in the
store; RAM has only the time at which each webhook is to be looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from math import inf

from roost.core.monitoring.facts import FactRow, Name
from roost.core.values import checks
from roost.core.webhooks import signatures
from roost.core.webhooks.webhook import Delivery, DueDelivery, delay_after
from roost.errors import RoostError, Unavailable
from roost.ports import Loop, Pending, Poster, PostResult
from roost.runtime.context import RuntimeContext
from roost.runtime.webhooks.outbox import WebhookOutbox
from roost.stores.sql.webhooks import deliveries, webhooks
from roost.stores.sql.webhooks.deliveries import DeliveryAttempt, Paused

log = logging.getLogger("roost.webhooks")

GLANCE = 1.0
"""Seconds between two looks at the clock."""
SLOW_LOOK = 10.0
"""Seconds between two looks at all pending deliveries."""
AT_ONCE = 4
"""Requests at once to one webhook: simple servers queue no more than five connections."""
WEBHOOKS_AT_ONCE = 32
KEPT = 1_000
"""Deliveries of each webhook that are kept after their end."""
REPLY_CHARS = 1_000


class WebhookSender:
    """Has a loop of its own, which is started with the first webhook. `ring` may be called from any thread.

    Without `hosting` it only sends tests: another process sends what is pending.
    """

    def __init__(
        self,
        context: RuntimeContext,
        outbox: WebhookOutbox,
        poster: Poster,
        send_mail: Callable[[str, str, str, str], Awaitable[object]],
        *,
        hosting: bool = True,
    ) -> None:
        self._context = context
        self._outbox = outbox
        self._poster = poster
        self._send_mail = send_mail
        self._looks: dict[str, float] = {}
        """Time at which the next delivery of a webhook is due."""
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._finished = 0
        self._bell: asyncio.Event | None = None
        self._lock = context.host.lock()
        self._loop: Loop | None = None
        self._closing = False
        self._looked = -inf
        self._hosting = hosting
        if hosting:
            outbox.listen(self.ring, self.look)
        if hosting and (outbox.has_webhooks or context.node):
            self.start()

    def start(self) -> None:
        """Start the loop, once."""
        with self._lock:
            if self._loop is None and not self._closing:
                self._loop = self._context.host.start_loop("roost-webhooks", self._main, lambda *_: None)

    @property
    def expected(self) -> float | None:
        """Return the time of the next request, as far as it is known; now while requests are in progress."""
        now = self._context.host.clock.now()
        return min([*self._looks.values(), *(now for _ in self._busy)], default=None)

    def ring(self, webhook_id: str) -> None:
        """Look at a webhook now, unless another node sends its requests."""
        if not self._context.does_chores():
            return
        self.start()
        if self._loop is not None:
            self._loop.call(self._expect, webhook_id, 0.0)

    def look(self) -> None:
        """Look at all webhooks now, and read what they choose."""
        self.start()
        if self._loop is not None:
            self._loop.call(self._look_soon)

    def test(self, request: DueDelivery) -> Pending[Delivery]:
        """Send a request once; the result is set when it is stored."""
        done: Pending[Delivery] = self._context.host.pending()
        self.start()
        if self._loop is None:
            raise Unavailable("this Roost is closing: test the webhook after its restart")
        self._loop.call(self._spawn, f"test {request.delivery_id}", lambda: self._test(request, done))
        return done

    def finish(self) -> None:
        """Begin no more requests; pending deliveries are sent after the next start."""
        with self._lock:
            self._closing = True
        if self._loop is not None:
            self._loop.call(self._wake)

    async def close(self) -> None:
        """Let requests in progress end for a short time."""
        self.finish()
        if self._loop is not None and await self._loop.over.within(self._context.limits.drain + 2.0):
            self._loop.join()

    # --- on the loop -------------------------------------------------------------------------------

    async def _main(self, loop: Loop) -> None:
        self._bell = asyncio.Event()
        clock = self._context.host.clock
        while not self._closing:
            try:
                if self._hosting and self._context.does_chores() and clock.monotonic() - self._looked >= SLOW_LOOK:
                    self._looked = clock.monotonic()
                    await self._look_at_all()
                self._begin_due()
            except Unavailable as error:
                log.warning("store unavailable, webhooks are sent later: %s", error)
            except Exception:  # nothing else sends webhooks
                log.exception("webhook loop failed; continuing")
            await self._pause()
        await self._end()

    async def _look_at_all(self) -> None:
        store, version = self._context.store, self._outbox.version
        self._outbox.reload(version, await store.read(webhooks.choices))
        found = await store.read(deliveries.first_due)
        self._outbox.count(await store.read(deliveries.counts))
        for webhook_id, due in found.items():
            self._expect(webhook_id, due)

    def _look_soon(self) -> None:
        self._looked = -inf
        self._wake()

    def _expect(self, webhook_id: str, due: float) -> None:
        if due <= self._looks.get(webhook_id, inf):
            self._looks[webhook_id] = due
            self._wake()

    def _wake(self) -> None:
        if self._bell is not None:
            self._bell.set()

    def _begin_due(self) -> None:
        """Serve webhooks that are due, in the order in which they were expected, so that each has its turn."""
        now = self._context.host.clock.now()
        for webhook_id, due in list(self._looks.items()):
            if len(self._busy) >= WEBHOOKS_AT_ONCE:
                return
            if due <= now and webhook_id not in self._busy:
                del self._looks[webhook_id]
                self._spawn(webhook_id, partial(self._serve, webhook_id))

    def _spawn(self, name: str, act: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            try:
                await act()
            except Unavailable as error:
                log.warning("store unavailable, a webhook is sent later: %s", error)
            except Exception:  # nobody awaits it; the slow look finds what is left
                log.exception("webhook failed; continuing", extra={"webhook": name})
            finally:
                self._busy.pop(name, None)
                self._wake()

        self._busy[name] = asyncio.get_running_loop().create_task(run(), name=f"webhook {name}")

    async def _pause(self) -> None:
        assert self._bell is not None
        timer = asyncio.get_running_loop().call_later(GLANCE, self._bell.set)
        try:
            await self._bell.wait()
        finally:
            timer.cancel()
        self._bell.clear()

    async def _end(self) -> None:
        tasks = list(self._busy.values())
        if tasks:
            await asyncio.wait(tasks, timeout=self._context.limits.drain)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # --- one webhook -------------------------------------------------------------------------------

    async def _serve(self, webhook_id: str) -> None:
        """Send a few of the deliveries that are due to a webhook; the others when it has its turn again."""
        now = self._context.host.clock.now()
        found, following = await self._context.store.read(deliveries.due, webhook_id, now, AT_ONCE)
        if found:
            attempts = await asyncio.gather(*(self._attempt(one) for one in found))
            await self._settle(webhook_id, attempts)
            following = 0.0
        if following is not None:
            self._expect(webhook_id, following)

    async def _attempt(self, one: DueDelivery) -> DeliveryAttempt:
        clock = self._context.host.clock
        body, began = one.body.encode(), clock.monotonic()
        headers = {"content-type": "application/json", "user-agent": "Roost-Webhooks/1"}
        headers |= signatures.headers(one.secrets, one.delivery_id, clock.now(), body)
        result = await self._poster.post(one.url, headers, body, self._context.limits.webhook_timeout)
        now, tries = clock.now(), one.attempts + 1
        is_last = tries >= self._context.limits.webhook_attempts
        retry_at = None if is_last else now + delay_after(tries, self._context.host.jitter())
        reply = self._context.redactor.clean(result.reply.replace("\0", "\ufffd"))[:REPLY_CHARS]
        seconds = clock.monotonic() - began
        return DeliveryAttempt(one, now, seconds, result.status, _error(result), reply, result.is_success, retry_at)

    async def _settle(self, webhook_id: str, attempts: Sequence[DeliveryAttempt]) -> None:
        """Store the results, however long the store takes: what is not stored is sent again."""
        paused: tuple[Paused, ...] = await self._context.store.write(
            deliveries.settle, attempts, key=webhook_id, facts=self._facts
        )
        over = sum(one.is_success or one.retry_at is None for one in attempts)
        self._outbox.finished(webhook_id, over)
        self._finished += over
        if self._finished >= KEPT // 4:
            self._finished = 0
            await self._context.store.write(deliveries.prune, webhook_id, KEPT, key=webhook_id)
        for one in paused:
            log.warning("webhook paused: %s", one.reason, extra={"webhook": one.webhook_id, "user": one.user_id})
            await self._tell_owner(one)

    async def _tell_owner(self, paused: Paused) -> None:
        owner, subject = f"user:{paused.user_id}", f"Webhook {paused.name} was paused"
        body = (
            f"Roost has paused the webhook {paused.name!r}: {paused.reason}.\n\nNew facts are kept. When the receiver"
            f" works again, resume it:\n\nroost webhooks resume {paused.webhook_id}"
        )
        try:
            await self._send_mail(paused.user_id, owner, subject[: checks.NAME_LENGTH], body)
        except RoostError as error:
            log.warning("mail about a paused webhook could not be sent: %s", error, extra={"user": paused.user_id})

    def _facts(self, paused: tuple[Paused, ...]) -> list[FactRow]:
        fact = self._context.facts.fact
        return [
            fact(Name.WEBHOOK_PAUSED, None, {"webhook_id": one.webhook_id, "reason": one.reason}, user_id=one.user_id)
            for one in paused
        ]

    async def _test(self, request: DueDelivery, done: Pending[Delivery]) -> None:
        try:
            attempt = await self._attempt(request)
            done.set(await self._context.store.write(deliveries.record, attempt, key=request.webhook_id))
        except BaseException:
            done.fail(Unavailable("the test could not be finished: try again"))
            raise


def _error(result: PostResult) -> str | None:
    if result.is_success or result.error is not None:
        return result.error
    return f"the receiver answered {result.status}" + (
        ": redirects are not followed" if result.status is not None and 300 <= result.status < 400 else ""
    )
