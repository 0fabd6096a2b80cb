"""The means of a turn: what it sends, whom it asks, when it sleeps, and the way to its journal and its tools.

What is sent goes through the turn's outbox, and leaves when the turn settles, or in a moment if it takes long.
"""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar, cast

from roost.core import addresses, checks, wake
from roost.core.audience import Audience
from roost.core.envelopes import Effect, Publish, Request, request_name
from roost.core.mail import Mail, answering
from roost.core.meetings.bodies import Body, Invited
from roost.core.meetings.effects import WriteEntry
from roost.core.meetings.stamps import milliseconds
from roost.core.memories import Memory
from roost.core.priority import Priority
from roost.core.steps import Asked, Recorded, Try
from roost.errors import BrainFailed, Invalid, NoAnswer, RoostError
from roost.ports import ModelCall, Tool
from roost.runtime.asking import Asking
from roost.runtime.journal import Journal
from roost.runtime.memories import Notes
from roost.runtime.outbox import Outbox, refused_as
from roost.runtime.requests import Answers
from roost.runtime.steps import Steps
from roost.runtime.tools import Calls

if TYPE_CHECKING:
    from roost.ports import Meeting
    from roost.runtime.office import Office
    from roost.runtime.shop import Shop
    from roost.runtime.thinking import Thinking
    from roost.runtime.voice import Voice

F = TypeVar("F", bound=Callable[..., Awaitable[Any]])


def seen(method: F) -> F:
    """Keep what it gives, or why it refuses, for a replay; in the order of asking, which may not be that of answers."""

    @functools.wraps(method)
    async def call(self: Means, *args: Any, **options: Any) -> Any:
        kept = self.seen.setdefault(method.__name__, [])
        place = len(kept)
        kept.append(None)
        try:
            kept[place] = given = await method(self, *args, **options)
        except RoostError as error:
            kept[place] = {"refused": refused_as(error)}
            raise
        return given

    return cast("F", call)


class Means:
    """Belongs to one try of one envelope; used on its loop."""

    _notes: Notes | None = None
    """What it remembers, made when it first does; on record with its settle, and never before."""

    def __init__(
        self, shop: Shop, office: Office, thinking: Thinking, *, place: Try, user_id: str, sender: str, hops: int = 0,
        recorded: tuple[Recorded, ...] = (), default_wake: wake.Condition | None = None, root: str = "",
    ) -> None:  # fmt: skip
        self._shop = shop
        self._office = office
        self._thinking = thinking
        self._user_id = self.owner = user_id
        """In whose name it acts."""
        self._sender = self.address = sender
        self._hops = hops + 1
        self._place = place
        self._envelope_id = self.at_hand = None if place.is_talk else place.envelope_id
        """What is handled. Of a talk all that is sent leaves when the turn settles, and nothing is asked."""
        self._address = place.holder
        self._epoch = place.epoch
        self._recorded = recorded
        self._default_wake = default_wake
        self._root = root
        """With what it all began that this turn is about; whatever it sends says so."""
        self._asked = Asked(recorded)
        self._asks: dict[str, int] = {}
        """How often each was asked."""
        self._requests: list[Request] = []
        """Asked, and not handed over yet."""
        self.asleep: wake.Condition | None = None
        self.seen: dict[str, list[Any]] = {}
        """What the turn was given in answer to what it did, in order, for a replay. `sends` have their numbers."""
        self._outbox = Outbox(shop, office.hall, thinking, place, recorded, root, self.seen, lambda: self.journal)

    # --- sending ---------------------------------------------------------------------------------

    async def mail(self, to: str, subject: str, body: str, **options: Any) -> str:
        link = self.link(to, options.get("priority"))
        return await self._outbox.send(
            lambda: self._office.mail(self._user_id, self._sender, to, subject, body, **link, **options),
            lambda mail: mail.mail_id,
        )

    async def answer(self, letter: Mail, text: str) -> None:
        """Reply to a letter with what was said about it; posted when the turn settles, and never before."""
        link = self.link(letter.sender, letter.priority)
        effect = await self._office.mail(
            self._user_id, self._sender, letter.sender, answering(letter.subject), text, priority=letter.priority,
            thread_id=letter.thread_id, reply_to=letter.mail_id, known=True, **link,
        )  # fmt: skip
        self._outbox.add(effect)

    async def send(self, to: str, text: str, **options: Any) -> None:
        link, lane = self.link(), f"from:{self._sender}"
        await self._outbox.send(
            lambda: self._office.task(
                self._user_id, self._sender, to, text, recorded=False, lane=lane, **link, **options
            )
        )  # fmt: skip

    async def broadcast(self, text: str, whom: Audience, priority: str) -> int:
        link = self.link()
        reached = await self._outbox.send(
            lambda: self._office.broadcast(self._user_id, self._sender, text, whom, priority=priority, **link),
            lambda broadcast: str(len(broadcast.envelopes)),
        )
        return int(reached)

    async def publish(self, name: str, data: Any, **options: Any) -> str:
        link = self.link()

        async def make() -> Publish:
            return self._office.event(self._user_id, self._sender, name, data, **link, **options)

        return await self._outbox.send(make, lambda event: event.event_id)

    def unsent(self) -> tuple[Effect, ...]:
        """What is posted when the turn settles."""
        unsent = self._outbox.unsent()
        return unsent if self._notes is None else (*unsent, *self._notes.effects())

    async def finish(self) -> None:
        """Once the brain is over: what is being posted is posted before the turn settles."""
        await self._outbox.finish()

    def link(self, to: object = "", priority: object = "") -> dict[str, Any]:
        """What ties something that is sent to all that led to it. BrainFailed: that is a long chain."""
        self._check_hops(_ends_with_a_person(to, priority))
        return {"hops": self._hops, "root": self._root}

    def _check_hops(self, last: bool = False) -> None:
        """`last`: whatever this is, the chain does not go on by itself through it."""
        self._check_fence()
        most = self._shop.limits.hops
        if self._hops > most and not last:
            raise BrainFailed(f"a chain of {most} messages, each of which led to the next, ends here", kind="hops")

    # --- meetings --------------------------------------------------------------------------------

    async def call_meeting(self, topic: str, **options: Any) -> str:
        link = self.link()
        return await self._outbox.send(
            lambda: self._office.call(self._user_id, self._sender, topic, **link, **options),
            lambda called: called.meeting_id,
        )

    async def write_entry(self, meeting: Meeting, body: Body) -> None:
        """What is on record is in the log, and not in the meeting as it was: there it is noted again."""
        self._check_hops()

        async def note() -> None:
            if isinstance(body, Invited):
                await self._office.guest(self._user_id, body.who)
            meeting.note(body, self._now())

        async def make() -> WriteEntry:
            return self._entry(meeting, body)

        await self._outbox.send(make, before=note)

    def speak(self, voice: Voice) -> None:
        """What the brain has said, when it is over; it leaves with the settle, and never before."""
        self._outbox.add(*(self._entry(voice.meeting, body) for body in voice.last(self._now())))

    def _entry(self, meeting: Meeting, body: Body) -> WriteEntry:
        return WriteEntry(self._shop.host.new_id("entry"), meeting.me, meeting.meeting_id, body)

    def _now(self) -> int:
        return milliseconds(self._shop.host.clock.now())

    # --- sleeping --------------------------------------------------------------------------------

    def sleep(
        self, seconds: float | None, until: datetime | float | None, wake_on: wake.Condition | None
    ) -> None:  # fmt: skip
        if self._default_wake is None:
            raise Invalid("only an agent can sleep: this turn is not one of an agent")
        now = self._shop.host.clock.now()
        self.asleep = wake.wanted(now, seconds, until, wake_on, self._default_wake)

    # --- asking ----------------------------------------------------------------------------------

    async def ask(self, to: str, text: str, deadline: float, priority: str) -> str:
        self._check_hops()
        if self._envelope_id is None:
            raise Invalid("only an agent can ask: this turn is not one of an agent")
        await self.journal.open()
        seconds = checks.seconds(deadline, "the deadline")
        key = addresses.parse(to, self._user_id).key
        self._asks[key] = count = self._asks.get(key, 0) + 1
        there = self._asked.take(key, text)
        if there is not None and there.done:
            return _answered(to, json.loads(there.result or "{}"))
        if there is None and not self._outbox.is_empty:
            await self._outbox.leave()
        number = there.number if there is not None else self.journal.next_number()
        name = request_name(self._address, self._envelope_id, number)
        self._answers.listen(name)  # listen first, then look, then wait
        thinking = self._thinking
        thinking.waits(True)
        thinking.acts += 1
        try:
            if there is None:
                await self._post_request(to, text, priority, number, name)
            found = await self._answers.get(name, number, seconds, look=there is not None)
        except RoostError as error:
            self.seen.setdefault("asks", []).append([key, count, refused_as(error)])
            raise
        finally:
            thinking.acts -= 1
            thinking.waits(False)
            self._answers.unlisten(name)
        return _answered(to, found)

    @cached_property
    def _answers(self) -> Answers:
        return Answers(self._shop, self._office.hall.requests, self._thinking.loop, str(self._envelope_id))

    async def _post_request(self, to: str, text: str, priority: str, number: int, name: str) -> None:
        """What is asked in the same turn of the loop goes with it."""
        effect = await self._office.task(
            self._user_id, self._sender, to, text, recorded=False, hops=self._hops, priority=priority, root=self._root,
            ask=name,
        )  # fmt: skip
        if not self._requests:
            asyncio.get_running_loop().call_soon(self._hand_over)
        self._requests.append(Request(str(self._envelope_id), self._address, self._epoch, number, effect.envelope))

    def _hand_over(self) -> None:
        requests, self._requests = self._requests, []
        self._office.hall.requests.post(requests)

    # --- remembering -----------------------------------------------------------------------------

    @seen
    async def remember(self, text: str, key: str | None) -> str:
        return await self._noted().remember(text, key)

    @seen
    async def recall(self, query: str, limit: int) -> tuple[Memory, ...]:
        return await self._noted().recall(query, limit)

    @seen
    async def forget(self, key: str) -> bool:
        return await self._noted().forget(key)

    def _noted(self) -> Notes:
        self._check_fence()
        if self._default_wake is None:
            raise Invalid("only an agent can remember: this turn is not one of an agent")
        if self._notes is None:
            self._notes = Notes(
                self._shop, self._office.hall, self._sender.removeprefix("agent:"), self._envelope_id
            )  # fmt: skip
        return self._notes

    # --- steps and tools -------------------------------------------------------------------------

    @cached_property
    def journal(self) -> Journal:
        """Made when it is first asked for: most turns have none."""
        return Journal(self._shop, self._thinking, self._place, self._recorded)

    @cached_property
    def _calls(self) -> Calls:
        return Calls(self._shop, self._thinking, self.journal, self._asking)

    @cached_property
    def _asking(self) -> Asking:
        return Asking(self._shop, self._thinking, self.journal)

    @cached_property
    def _steps(self) -> Steps:
        return Steps(self._thinking, self.journal, self._asking)

    @property
    def is_journaled(self) -> bool:
        """Whether there are steps on record of what is handled."""
        return bool(self._recorded) or ("journal" in self.__dict__ and self.journal.is_used)

    async def step(
        self, name: str, act: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any],
        check: Callable[[str], Any] | None = None,
    ) -> Any:  # fmt: skip
        self._check_fence()
        return await self._steps.step(name, act, args, options, check)

    @property
    def tools(self) -> Sequence[Tool]:
        return self._calls.tools

    async def call_tool(self, tool: str | Tool, arguments: Mapping[str, Any], call_id: str) -> str:
        self._check_fence()
        return await self._calls.call(tool, arguments)

    def model_call(self, name: str, request: Any) -> AbstractAsyncContextManager[ModelCall]:
        self._check_fence()
        return self.journal.model_call(name, request)

    def _check_fence(self) -> None:
        if self._thinking.fenced:
            raise asyncio.CancelledError


def _ends_with_a_person(to: object, priority: object) -> bool:
    """People answer in their own time. Of urgent mail agents hear too, and may write some more."""
    return isinstance(to, str) and to.startswith("user:") and priority != Priority.URGENT


def _answered(whom: str, answer: Mapping[str, str]) -> str:
    if "text" in answer:
        return answer["text"]
    if "error" in answer:
        raise NoAnswer(f"{whom} could not answer: {answer['error']}")
    raise NoAnswer(f"{whom} has not answered in time")
