"""Tools that talk: send a message and wait for the answer, and read a talk.

A call that ends early (its time is up, or its client cancels it) leaves the answer alone: it is written to its end, and
`read_talk` returns it.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Literal, cast

from roost.core.talks.messages import Change, Message, Sender, Status
from roost.core.values import addresses, checks
from roost.errors import Invalid, Unavailable
from roost.mcp_server.arguments import AskArguments, ReadTalkArguments, TalkArguments
from roost.mcp_server.results import TalkAnswer, TalkMessage, TalkMessages, cut, fitting

if TYPE_CHECKING:
    from roost.client import AsyncRemoteService
    from roost.service import AsyncAgentService

    Service = AsyncAgentService | AsyncRemoteService

log = logging.getLogger("roost.mcp")

PACE = 0.1
"""Seconds between two progress notifications of a call."""
KNOWN_KEYS = 1_000
"""Most keys of new talks that are remembered."""
LOOK = 1.0
"""Seconds between two looks for an approval that an answer needs."""
READ = 50
"""Messages after one's own among which its answer is found."""

Report = Callable[[float, str], Awaitable[None]]
"""Function that sends a progress notification: the characters written so far, and the newest ones."""


class TalkKeys:
    """Talks that were started with a key, so that a repeated call continues the same talk.

    The key of a message belongs to its talk. Without this memory, a repeated call without a talk would start another.
    It is the memory of one process: after a restart a key starts a new talk.
    """

    def __init__(self) -> None:
        self._talks: OrderedDict[tuple[str, ...], str] = OrderedDict()
        self._starting = asyncio.Lock()

    async def started(self, name: tuple[str, ...] | None, start: Callable[[], Awaitable[str]]) -> str:
        """Return the talk of this name; start it if there is none. Without a name a talk is always started."""
        if name is None:
            return await start()
        async with self._starting:
            if name not in self._talks:
                self._talks[name] = await start()
                if len(self._talks) > KNOWN_KEYS:
                    self._talks.popitem(last=False)
            return self._talks[name]


@dataclass(frozen=True, slots=True)
class McpContext:
    """Service and user of one call."""

    service: Service
    user: str
    report: Report
    keys: TalkKeys = field(default_factory=TalkKeys)


# --- tools ---------------------------------------------------------------------------------------------


async def talk(context: McpContext, asked: TalkArguments) -> TalkAnswer:
    """Send a message to an agent or a profile, and wait for the answer."""
    if asked.talk_id is not None and (asked.agent is not None or asked.profile is not None):
        raise Invalid("give `talk_id` to continue a talk, or `agent` or `profile` to start one, not both")
    if asked.talk_id is not None:
        return await _answered(context, asked.talk_id, asked)
    return await _answered(context, await _started(context, asked, asked.agent, asked.profile), asked)


async def ask(context: McpContext, agent: str, asked: AskArguments) -> TalkAnswer:
    """Send a message to one agent, and wait for the answer."""
    if asked.talk_id is None:
        return await _answered(context, await _started(context, asked, agent, None), asked)
    known = await context.service.get_session(context.user, asked.talk_id)
    if known.agent != addresses.of_agent(agent, context.user).text:
        raise Invalid(
            f"the talk {asked.talk_id!r:.80} is not with the agent {agent!r}: use the tool talk to continue it"
        )
    return await _answered(context, asked.talk_id, asked)


async def read_talk(context: McpContext, asked: ReadTalkArguments) -> TalkMessages:
    """Return messages of a talk; with `wait`, after the answer in progress has ended or the time is up."""
    service, user = context.service, context.user
    if asked.wait > 0:
        cursor = (await service.get_messages(user, asked.talk_id, limit=1)).cursor
        await _follow(context, asked.talk_id, cursor, asked.wait)
    page = await service.get_messages(user, asked.talk_id, before=asked.before, limit=asked.limit)
    wanted = [one for one in page.messages if one.seq > asked.after and one.status is not Status.WITHDRAWN]
    found = fitting(wanted[::-1], lambda one: len(one.content))[::-1]
    next_step = None
    if page.running:
        last = found[-1].seq if found else asked.after
        next_step = f"The answer is not finished: call read_talk again, with after={last - 1 if found else last}."
    return TalkMessages(
        talk_id=asked.talk_id,
        messages=[_shown(one) for one in found],
        writing=page.running,
        more_before=len(found) < len(wanted) or (page.more_before and bool(found) and found[0].seq > asked.after + 1),
        next_step=next_step,
    )


# --- sending and waiting -------------------------------------------------------------------------------


async def _started(context: McpContext, asked: AskArguments, agent: str | None, profile: str | None) -> str:
    """Return a talk for a message, which is checked first: a refused message starts no talk."""
    checks.text(asked.message, "the message", most=sys.maxsize)
    if asked.key is not None:
        checks.name(asked.key, "the key")

    async def start() -> str:
        return await context.service.create_talk_session(context.user, agent=agent, profile=profile)

    name = None if asked.key is None else (context.user, asked.key, agent or "", profile or "")
    return await context.keys.started(name, start)


async def _answered(context: McpContext, talk_id: str, asked: AskArguments) -> TalkAnswer:
    service, user = context.service, context.user
    cursor = (await service.get_messages(user, talk_id, limit=1)).cursor
    sent = await service.add_message(user, talk_id, asked.message, key=asked.key)
    found: list[Message] = []
    is_asking = False
    try:
        if asked.wait > 0:
            await _follow(context, talk_id, cursor, asked.wait)
        page = await service.get_messages(user, talk_id, before=sent.seq + 1 + READ, limit=READ)
        found = _answer_to(sent.seq, page.messages)
        is_asking = page.running and (await service.get_session(user, talk_id)).asking
    except Unavailable as error:  # Roost is closing, for example. The message is stored, and its answer follows later.
        log.info("cannot wait for an answer: %s", error)
    return _answer(talk_id, sent.seq, found, is_asking=is_asking)


async def _follow(context: McpContext, talk_id: str, cursor: str, seconds: float) -> None:
    """Report the answer as it is written, until it ends, it needs an approval, or the time is up."""
    tasks = (
        asyncio.create_task(_reported(context, talk_id, cursor), name="mcp: follow a talk"),
        asyncio.create_task(_until_asking(context, talk_id), name="mcp: look for approvals"),
    )
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _reported(context: McpContext, talk_id: str, cursor: str) -> None:
    progress = _Progress(context.report)
    stream = context.service.stream_messages(context.user, talk_id, after=cursor)
    async with aclosing(cast("AsyncGenerator[Change]", stream)) as changes:
        async for change in changes:
            if change.message.sender == Sender.AGENT:
                await progress.add(change.text)
    await progress.send()


async def _until_asking(context: McpContext, talk_id: str) -> None:
    while True:
        if (await context.service.get_session(context.user, talk_id)).asking:
            return
        await asyncio.sleep(LOOK)


class _Progress:
    """Progress notifications of one call, at most one in `PACE` seconds."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._written = 0
        self._unsent = ""
        self._sent_at = monotonic() - PACE

    async def add(self, text: str) -> None:
        self._unsent += text
        if monotonic() - self._sent_at >= PACE:
            await self.send()

    async def send(self) -> None:
        if self._unsent:
            text, self._unsent = self._unsent, ""
            self._written += len(text)
            self._sent_at = monotonic()
            await self._report(self._written, cut(text))


# --- results -------------------------------------------------------------------------------------------


def _answer_to(number: int, messages: Iterable[Message]) -> list[Message]:
    """Return the messages of the agent that follow a message, up to the next one of the user."""
    found: list[Message] = []
    for message in messages:
        if message.seq > number and message.status is not Status.WITHDRAWN:
            if message.sender == Sender.AGENT:
                found.append(message)
            elif found:
                break
    return found


def _answer(talk_id: str, number: int, found: list[Message], *, is_asking: bool) -> TalkAnswer:
    text = cut("\n\n".join(message.content for message in found if message.content))
    rest = f"call read_talk with talk_id={talk_id!r}, after={number} and wait=30"
    if is_asking:
        step = f"A person must approve a step of the agent first (`roost approvals ls`). Then {rest}."
        return TalkAnswer(
            talk_id=talk_id, message_number=number, status="waiting_for_approval", answer=text, next_step=step
        )
    if not found:
        step = f"There is no answer yet. To get it, {rest}."
        return TalkAnswer(talk_id=talk_id, message_number=number, status="waiting", answer="", next_step=step)
    last = found[-1]
    is_writing = last.status is Status.STREAMING
    return TalkAnswer(
        talk_id=talk_id,
        message_number=number,
        status="writing" if is_writing else cast('Literal["complete"]', str(last.status)),
        answer=text,
        error=last.error,
        next_step=f"The answer is still being written. To get the rest, {rest}." if is_writing else None,
    )


def _shown(message: Message) -> TalkMessage:
    return TalkMessage(
        number=message.seq,
        sender=message.sender,
        text=cut(message.content),
        status=message.status,
        created=message.created,
        error=message.error,
    )
