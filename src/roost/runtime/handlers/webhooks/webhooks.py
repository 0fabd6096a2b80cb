"""Webhooks: facts of a user are posted to URLs."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from roost.core.talks.messages import MOST, PAGE
from roost.core.values import checks
from roost.core.values.traits import idempotent, reads
from roost.core.webhooks.signatures import new_secret
from roost.core.webhooks.webhook import PING, ChosenFacts, CreatedWebhook, Delivery, Webhook, checked_events, ping_body
from roost.errors import Unavailable
from roost.ports import Poster, Tx
from roost.runtime.context import RuntimeContext
from roost.runtime.handlers.filtering import AFTER_ALL_IDS
from roost.runtime.webhooks.outbox import WebhookOutbox
from roost.runtime.webhooks.sender import WebhookSender
from roost.stores.sql.webhooks import deliveries, webhooks

T = TypeVar("T")
PATIENCE = 5.0
"""Seconds that a test may take in addition to its request."""
OLD_SECRET = 24 * 3600.0
"""Seconds for which requests are also signed with a secret that was replaced."""


class Webhooks:
    """Webhooks of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(
        self, context: RuntimeContext, outbox: WebhookOutbox, sender: WebhookSender | None, poster: Poster | None
    ) -> None:
        self._context = context
        self._outbox = outbox
        self._sender = sender
        self._poster = poster

    async def create(self, user_id: str, url: str, *, events: Sequence[str] = ("*",), name: str = "") -> CreatedWebhook:
        """Post facts of the user to a URL from now on; return the webhook with the secret that signs its requests.

        `events`: names of facts, such as `TaskDone`, or patterns, such as `Task*`. The secret cannot be read again.
        """
        checks.name(user_id, "the user id")
        target, chosen = self._url(url), checked_events(events)
        webhook_id, secret = self._context.host.new_id("webhook"), new_secret()
        named = _named(name) if name else webhook_id
        most, now = self._context.limits.webhooks_per_user, self._context.host.clock.now()
        args = (webhook_id, user_id, named, target, " ".join(chosen), secret, now, most)
        return CreatedWebhook(await self._write(user_id, webhooks.create, *args), secret)

    async def list(self, user_id: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Webhook]:
        """Return the webhooks of a user, oldest first; `after` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(webhooks.listed, user_id, limit, checks.place(after, "`after`"))

    async def get(self, user_id: str, webhook_id: str) -> Webhook:
        self._check(user_id, webhook_id)
        return await self._context.store.read(webhooks.get, user_id, webhook_id)

    async def change(
        self,
        user_id: str,
        webhook_id: str,
        *,
        url: str | None = None,
        events: Sequence[str] | None = None,
        name: str | None = None,
    ) -> Webhook:
        """Change the URL, the events or the name; what is None stays. Pending deliveries go to the new URL."""
        self._check(user_id, webhook_id)
        target = None if url is None else self._url(url)
        chosen = None if events is None else " ".join(checked_events(events))
        named = None if name is None else _named(name)
        return await self._write(user_id, webhooks.change, user_id, webhook_id, named, target, chosen)

    @idempotent
    async def pause(self, user_id: str, webhook_id: str) -> Webhook:
        """Send nothing until it is resumed. Facts are kept, up to the limit of pending deliveries."""
        self._check(user_id, webhook_id)
        return await self._write(user_id, webhooks.pause, user_id, webhook_id, "paused by its owner")

    @idempotent
    async def resume(self, user_id: str, webhook_id: str) -> Webhook:
        """Send what is pending, and further facts."""
        self._check(user_id, webhook_id)
        return await self._write(user_id, webhooks.pause, user_id, webhook_id, None)

    async def rotate(self, user_id: str, webhook_id: str) -> CreatedWebhook:
        """Replace the secret; return the new one. For a day, requests are signed with both."""
        self._check(user_id, webhook_id)
        secret, until = new_secret(), self._context.host.clock.now() + OLD_SECRET
        return CreatedWebhook(await self._write(user_id, webhooks.rotate, user_id, webhook_id, secret, until), secret)

    async def delete(self, user_id: str, webhook_id: str) -> None:
        """Delete a webhook with its pending deliveries."""
        self._check(user_id, webhook_id)
        await self._write(user_id, webhooks.delete, user_id, webhook_id)

    async def test(self, user_id: str, webhook_id: str) -> Delivery:
        """Send one request with the type `Ping`, also if it is paused; return the delivery with its result."""
        self._check(user_id, webhook_id)
        if self._sender is None:
            raise Unavailable("this Roost sends no webhooks")
        message_id, body = self._context.host.new_id("msg"), ping_body(user_id, self._context.host.clock.now())
        request = await self._context.store.read(deliveries.request_of, user_id, webhook_id, message_id, PING, body)
        done = self._sender.test(request)
        if not await done.within(self._context.limits.webhook_timeout + PATIENCE):
            raise Unavailable("the test was not finished in time: see the deliveries of the webhook")
        return await done

    @reads
    async def deliveries(
        self, user_id: str, webhook_id: str, *, limit: int = PAGE, before: str | None = None
    ) -> builtins.list[Delivery]:
        """Return deliveries, newest first, each with its last attempt; `before` is the last id of the previous page."""
        self._check(user_id, webhook_id)
        checks.count(limit, "the limit", least=1, most=MOST)
        last = checks.place(before, "`before`") or AFTER_ALL_IDS
        return await self._context.store.read(deliveries.listed, user_id, webhook_id, limit, last)

    # --- inside ------------------------------------------------------------------------------------

    async def _write(self, user_id: str, op: Callable[..., T], *args: object) -> T:
        """Execute a change; after its commit the outbox knows the choices of the user."""

        def changed(tx: Tx) -> tuple[T, dict[str, tuple[ChosenFacts, ...]]]:
            result = op(tx, *args)
            return result, webhooks.choices(tx, user_id)

        key, then = f"webhooks {user_id}", partial(self._then, user_id)
        done: tuple[T, object] = await self._context.store.write(changed, key=key, then=then, failed=self._failed)
        return done[0]

    def _then(self, user_id: str, changed: tuple[object, dict[str, tuple[ChosenFacts, ...]]]) -> None:
        result, chosen = changed
        self._outbox.changed(user_id, chosen)
        if isinstance(result, Webhook):
            self._outbox.ring(result.webhook_id)

    def _failed(self, error: Exception) -> None:
        if isinstance(error, Unavailable):  # it may have been committed
            self._outbox.look()

    def _url(self, url: object) -> str:
        if self._poster is None:
            raise Unavailable("this Roost sends no webhooks")
        return self._poster.check(url)

    def _check(self, user_id: str, webhook_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(webhook_id, "the webhook id")


def _named(name: object) -> str:
    return checks.name(checks.name(name, "the name of the webhook").strip(), "the name of the webhook")
