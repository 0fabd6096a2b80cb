"""Hooks: requests of other programs publish events, or give tasks to agents."""

from __future__ import annotations

import builtins
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from roost.core.envelopes.effects import Publish, SendTask
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.sender import SenderContext
from roost.core.monitoring.facts import FactRow
from roost.core.talks.messages import MOST, PAGE, at
from roost.core.values import addresses, checks, patterns
from roost.core.webhooks import hook as rules
from roost.core.webhooks.hook import CreatedHook, Hook, VerifiableHook
from roost.core.webhooks.signatures import new_secret
from roost.errors import Invalid, Unavailable
from roost.runtime.context import RuntimeContext
from roost.runtime.dispatch.dispatcher import Dispatcher
from roost.stores.sql import hooks


class Hooks:
    """Hooks of the service. Its coroutines await only pending results, so that plain threads can drive them."""

    def __init__(self, context: RuntimeContext, dispatcher: Dispatcher) -> None:
        self._context = context
        self._dispatcher = dispatcher

    async def create(
        self,
        user_id: str,
        *,
        event: str | None = None,
        agent: str | None = None,
        task: str | None = None,
        name: str = "",
        secret: bool = True,
        headers: Sequence[str] = (),
    ) -> CreatedHook:
        """Create a URL to which other programs post; return its path and its secret, which cannot be read again.

        A request publishes the event `event` with its body as data, or gives `agent` the task `task`, in which `{body}`
        stands for its body. `headers`: names of headers that the event has. With `secret`, requests must be signed.
        Raises NotFound if the agent does not exist.
        """
        checks.name(user_id, "the user id")
        if (event is None) == (agent is None):
            raise Invalid("a hook publishes an event or gives a task to an agent: name one of them")
        if event is not None and task is not None:
            raise Invalid("`task` is for hooks with an agent")
        if agent is not None and headers:
            raise Invalid("`headers` are for hooks with an event")
        hook_id, token = self._context.host.new_id("hook"), rules.new_token()
        hook = Hook(
            hook_id,
            user_id,
            _named(name) if name else hook_id,
            None if event is None else patterns.check_name(event),
            None if agent is None else addresses.of_agent(agent, user_id).text,
            None if task is None else checks.text(task, "the task", most=rules.LONGEST_TASK),
            rules.checked_headers(headers),
            checks.flag(secret, "`secret`"),
            at(self._context.host.clock.now()),
        )
        key = new_secret() if secret else None
        most = self._context.limits.hooks_per_user
        await self._context.store.write(hooks.create, hook, rules.digest(token), key, most, key=f"hooks {user_id}")
        return CreatedHook(hook, rules.PATH + token, key)

    async def list(self, user_id: str, *, limit: int = PAGE, after: str = "") -> builtins.list[Hook]:
        """Return the hooks of a user, oldest first; `after` is the last id of the previous page."""
        checks.name(user_id, "the user id")
        checks.count(limit, "the limit", least=1, most=MOST)
        return await self._context.store.read(hooks.listed, user_id, limit, checks.place(after, "`after`"))

    async def get(self, user_id: str, hook_id: str) -> Hook:
        self._check(user_id, hook_id)
        return await self._context.store.read(hooks.get, user_id, hook_id)

    async def delete(self, user_id: str, hook_id: str) -> None:
        """Delete a hook: requests to its URL are refused from now on."""
        self._check(user_id, hook_id)
        await self._context.store.write(hooks.delete, user_id, hook_id)

    # --- for servers -------------------------------------------------------------------------------

    async def find(self, token: str) -> VerifiableHook | None:
        """Return the hook of a token. For servers."""
        return await self._context.store.read(hooks.find, rules.digest(token))

    async def accept(self, hook: Hook, headers: Mapping[str, str], body: Any) -> str:
        """Publish the event, or give the task, of a request that was verified; return its id. For servers.

        `body` is the parsed body. A request with the same id as an earlier one returns the id of then.
        """
        if self._dispatcher.closing:
            raise Unavailable("this Roost is closing: send the request again after its restart")
        self._context.ram.check()
        effect = await self._effect(hook, headers, body)
        await self._context.quota.use(hook.user_id, len(json.dumps(body)))
        address = f"{hook.user_id}/" if isinstance(effect, Publish) else effect.envelope.address
        request_id, now = rules.request_id(headers), self._context.host.clock.now()
        accepted: tuple[str, object] = await self._context.store.write(
            hooks.accept,
            hook,
            request_id,
            effect,
            now,
            facts=partial(self._facts, address, effect),
            then=partial(self._then, address, effect),
        )
        return accepted[0]

    async def _effect(self, hook: Hook, headers: Mapping[str, str], body: Any) -> Publish | SendTask:
        composer, sender = self._dispatcher.composer, SenderContext.of_user(hook.user_id)
        if hook.event is not None:
            return composer.event(sender, hook.event, rules.event_data(hook, body, headers))
        text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False, indent=2)
        return await composer.task(sender, hook.agent or "", rules.prompt(hook, text))

    def _facts(
        self, address: str, effect: Publish | SendTask, accepted: tuple[str, tuple[Envelope, ...] | None]
    ) -> Sequence[FactRow]:
        _, posted = accepted
        return [] if posted is None else self._context.facts.sent(address, (effect,), posted)

    def _then(
        self, address: str, effect: Publish | SendTask, accepted: tuple[str, tuple[Envelope, ...] | None]
    ) -> None:
        _, posted = accepted
        if posted is not None:
            self._dispatcher.sent(address, effect, posted)

    def _check(self, user_id: str, hook_id: str) -> None:
        checks.name(user_id, "the user id")
        checks.name(hook_id, "the hook id")


def _named(name: object) -> str:
    return checks.name(checks.name(name, "the name of the hook").strip(), "the name of the hook")
