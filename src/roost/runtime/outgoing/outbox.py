"""Outbox of a turn: sends wait here until the turn settles, and are posted in the same transaction.

A turn that takes long posts its sends earlier, and records them. A repeated turn matches its sends with the recorded
ones by kind, recipient and content, each record once. A send that matches no record is posted.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.journal.steps import Attempt, Content, Recorded, StepKind, content_key
from roost.core.monitoring.facts import FactRow
from roost.errors import RoostError, Unavailable
from roost.stores.sql.inbox import in_progress

if TYPE_CHECKING:
    from roost.runtime.context import RuntimeContext
    from roost.runtime.execution.turn_execution import TurnExecution
    from roost.runtime.ports.notifier import Notifier

log = logging.getLogger("roost.outbox")

E = TypeVar("E", bound=Effect)

POST_AFTER = 0.05
"""Seconds after which sends are posted although the turn still runs."""


class Outbox:
    """Outbox of one attempt of one envelope. Used on its loop.

    Sends of a talk's turn are posted when the turn settles, or ahead of a question.
    """

    def __init__(
        self,
        context: RuntimeContext,
        notifier: Notifier,
        execution: TurnExecution,
        place: Attempt,
        recorded: tuple[Recorded, ...],
        root: str,
        seen: dict[str, list[Any]],
        next_step: Callable[[], int],
    ) -> None:
        self._context = context
        self._notifier = notifier
        self._execution = execution
        self._place = place
        self._root = root
        self._seen = seen
        self._action_log = execution.action_log
        self._next_step = next_step
        self._recorded_sends = _RecordedSends(recorded) if recorded else None
        self._count = 0
        """Number of sends so far, including refused and recorded ones."""
        self._unsent: list[Effect] = []
        self._contents: list[Content] = []
        """Content of each unsent effect that may be posted before the turn settles."""
        self._posting: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_empty(self) -> bool:
        return not self._unsent and self._posting is None

    async def send(
        self,
        content: Content,
        make: Callable[[], Awaitable[E]],
        name: Callable[[E], str] | None = None,
        *,
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> str:
        """Send the result of `make`, unless a send with this content is recorded; return its name in both cases.

        `before` is called first in both cases. The name, or the refusal, is stored for a replay. `make` may change the
        content; the changed content is recorded.
        """
        self._count = number = self._count + 1
        position = self._action_log.add(content)
        try:
            if before is not None:
                await before()
            sent_name = (
                None if self._recorded_sends is None else self._recorded_sends.take(number, content, self._clean)
            )
            if sent_name is None:
                effect = await make()
                sent_name = name(effect) if name is not None else ""
                self._put(effect, content)
        except RoostError as error:
            self._action_log.remove(position, content)
            self._seen.setdefault("sends", []).append([number, as_recorded_error(error)])
            raise
        if sent_name:
            self._seen.setdefault("sends", []).append([number, sent_name])
        return sent_name

    def add(self, *effects: Effect) -> None:
        """Add effects that are posted when the turn settles, and never earlier."""
        self._unsent += effects

    def unsent(self) -> tuple[Effect, ...]:
        """Return the effects to post when the turn settles."""
        if self._timer is not None:
            self._timer.cancel()
        return tuple(self._unsent)

    async def finish(self) -> None:
        """Wait for the post in progress, after the brain has ended."""
        if self._timer is not None:
            self._timer.cancel()
        if self._posting is not None:
            await self._posting

    async def post_all(self) -> None:
        """Post all sends so far, before the turn continues."""
        while self._unsent or self._posting is not None:
            if self._posting is None:
                self._post_now()
            if self._posting is None:
                return
            await asyncio.wait({self._posting})

    def _put(self, effect: Effect, content: Content) -> None:
        self._unsent.append(effect)
        self._contents.append(content)
        self._post_later()

    def _clean(self, text: str) -> str:
        return self._context.redactor.clean_json(text)

    def _post_later(self) -> None:
        if self._timer is None and not self._place.is_talk:
            self._timer = asyncio.get_running_loop().call_later(POST_AFTER, self._post_now)

    def _post_now(self) -> None:
        self._timer = None
        if self._unsent and not self._execution.over and self._posting is None:
            name = f"post {self._place.envelope_id}"
            self._posting = asyncio.get_running_loop().create_task(self._post(), name=name)

    async def _post(self) -> None:
        effects, self._unsent = tuple(self._unsent), []
        contents, self._contents = self._contents, []
        keys = tuple(content_key(content, self._clean) for content in contents)
        step = self._next_step()
        try:
            while not self._execution.fenced and not await self._has_posted(effects, keys, step):  # noqa: ASYNC110
                await asyncio.sleep(0.2 + 0.8 * self._context.host.jitter())
        finally:
            self._posting = None
            if self._unsent:  # sent meanwhile
                self._post_later()

    def _posted(self, envelopes: tuple[Envelope, ...] | None) -> None:
        """Follow the commit, on the writer's thread: the loop of the turn may be blocked."""
        if envelopes:
            self._notifier.deliver(envelopes)

    def _facts(self, effects: tuple[Effect, ...], envelopes: tuple[Envelope, ...] | None) -> list[FactRow]:
        if envelopes is None:
            return []
        sender = f"{self._place.user_id}/{self._place.agent_id or ''}"
        return self._context.facts.sent(sender, effects, envelopes, self._root)

    async def _has_posted(self, effects: tuple[Effect, ...], keys: tuple[str, ...], step: int) -> bool:
        """Return False to try again as the same step, since the write may have been committed."""
        place = self._place
        try:
            post_now, now = in_progress.post_now, self._context.host.clock.now()
            posted = await self._context.store.write(
                post_now,
                place,
                step,
                effects,
                keys,
                now,
                facts=partial(self._facts, effects),
                then=self._posted,
            )
        except Unavailable as error:
            log.warning("sends of a turn could not be posted; retrying: %s", error, extra={"agent": place.holder})
            self._notifier.missed(effects)
            return False
        if posted is None:
            self._unsent, self._contents = [], []  # another run has taken over: this turn has no further effects
        return True


def as_recorded_error(error: RoostError) -> list[str]:
    """Return the record of a refusal, for a replay."""
    return [type(error).__name__, str(error)]


class _RecordedSends:
    """Sends that earlier attempts recorded; each is returned once."""

    def __init__(self, recorded: Iterable[Recorded]) -> None:
        self._named: dict[str, list[str]] = {}
        self._numbered: dict[int, str] = {}
        """Sends by number, from old records without contents."""
        for step in recorded:
            if step.kind == StepKind.SENT:
                self._add(json.loads(step.result or "[]"))

    def _add(self, sent: list[list[str]] | dict[str, str]) -> None:
        if isinstance(sent, dict):
            self._numbered |= {int(number): name for number, name in sent.items()}
            return
        for key, name in sent:
            self._named.setdefault(key, []).append(name)

    def take(self, number: int, content: Content, clean: Callable[[str], str]) -> str | None:
        if number in self._numbered:
            return self._numbered[number]
        names = self._named.get(content_key(content, clean)) if self._named else None
        return names.pop(0) if names else None
