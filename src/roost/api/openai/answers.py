"""Answer to a request, read while it is written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Collection
from contextlib import aclosing
from dataclasses import dataclass

from roost.api.error_responses import HttpError
from roost.api.openai.requests import NEW, TALK_HEADER
from roost.api.openai.talks import PostedMessage
from roost.core.agents.agent import State
from roost.core.failures.faults import Fault
from roost.core.limits.usage import NOTHING, Usage
from roost.core.talks.messages import Change, Message, Sender, Status
from roost.core.talks.side_channels import Channel, ToolNote, open_calls
from roost.core.talks.talk import Talk
from roost.core.values import addresses
from roost.errors import NotFound
from roost.service import AsyncAgentService

LOOK = 1.0
"""Seconds without a change after which the reason is looked up."""
THOUGHTS = (Channel.THINKING, Channel.COMMENTARY)
CUT = frozenset({Fault.RUN_TOKENS, Fault.TOO_LONG})
"""Faults of an answer that is cut off at a limit of its length."""
_STATUSES = {
    Fault.RATE_LIMIT: 429,
    Fault.DAY_TOKENS: 429,
    Fault.PROVIDER: 503,
    Fault.RESTING: 503,
    Fault.TOO_LONG: 400,
    Fault.REFUSED: 400,
}


@dataclass(frozen=True, slots=True)
class AnswerPiece:
    """Text that was added to an answer, and to its thoughts."""

    text: str
    thoughts: str

    @property
    def has_text(self) -> bool:
        return bool(self.text or self.thoughts)


SILENCE = AnswerPiece("", "")
"""Yielded after each `LOOK` without a change."""


class ChatAnswer:
    """Answer to one posted message. Iterate over `pieces`; then `finish_reason`, `usage` and `calls` are known."""

    def __init__(self, service: AsyncAgentService, posted: PostedMessage, tools: Collection[str] = ()) -> None:
        self._service = service
        self._posted = posted
        self._tools = tools
        self.finish_reason = "stop"
        self.usage: Usage = NOTHING
        self.calls: list[ToolNote] = []
        """Calls with which the answer has ended: the client runs these tools."""

    async def pieces(self) -> AsyncIterator[AnswerPiece]:
        """Yield the answer as it is written, and SILENCE while it is not.

        Raise HttpError if it fails, is interrupted, or waits for a person.
        """
        has_text = False
        async with aclosing(self._changes()) as changes:
            async for change in changes:
                if change is None:
                    yield SILENCE
                    continue
                message = change.message
                if message.sender != Sender.AGENT or message.seq <= self._posted.seq:
                    continue
                if change.reset and has_text:
                    raise self._error(503, "interrupted", "the answer was started again: send the request again")
                piece = AnswerPiece(change.text, "".join(n.text for n in change.notes if n.channel in THOUGHTS))
                if piece.has_text:
                    has_text = True
                    yield piece
                if message.status is not Status.STREAMING:
                    await self._end(message)
                    return
        await self._check_closing()

    async def _changes(self) -> AsyncGenerator[Change | None]:
        """Yield the changes of the talk until its run ends. If nothing changes, look for the reason and yield None."""
        posted = self._posted
        stream = self._service.stream_messages(posted.user, posted.talk_id, after=posted.after)
        while True:
            step = asyncio.ensure_future(anext(stream, None))
            try:
                while not (await asyncio.wait((step,), timeout=LOOK))[0]:
                    await self._check_waiting()
                    yield None
            finally:
                if not step.done():
                    step.cancel()
                    await asyncio.wait((step,))
            if (change := step.result()) is None:
                return
            yield change

    async def _end(self, message: Message) -> None:
        run = None
        if message.run_id is not None:
            try:
                run = await self._service.runs.get(self._posted.user, message.run_id)
            except NotFound:
                run = None  # deleted by now
        self.usage = run.usage if run is not None else NOTHING
        if message.status is Status.COMPLETE:
            self.calls = [call for call in open_calls(message.notes) if call.tool in self._tools]
            self.finish_reason = "tool_calls" if self.calls else "stop"
            return
        if message.status is not Status.FAILED:
            raise self._error(409, "interrupted", "the answer was interrupted by a stop or by another message")
        fault = Fault(run.run.fault) if run is not None and run.run.fault in set(Fault) else Fault.INTERNAL
        if fault in CUT and message.content:
            self.finish_reason = "length"
            return
        raise self._error(_STATUSES.get(fault, 500), fault, message.error or "the answer failed: try again")

    async def _check_closing(self) -> None:
        """Raise HttpError if the stream has ended before the run. A run that has ended may have no answer."""
        page = await self._service.get_messages(self._posted.user, self._posted.talk_id, limit=1)
        if page.running:
            then = "send the request again" if self._posted.is_temporary else "the talk has the answer"
            raise self._error(503, "unavailable", f"this Roost is closing: {then} after its restart")

    # --- waiting ---------------------------------------------------------------------------------

    async def _check_waiting(self) -> None:
        """Raise HttpError if the answer waits for a person: for an approval, or for the start of its agent."""
        talk = await self._service.get_session(self._posted.user, self._posted.talk_id)
        if talk.asking:
            raise await self._approval()
        if talk.agent is not None:
            await self._check_agent(talk)

    async def _approval(self) -> HttpError:
        posted = self._posted
        found = await self._service.approvals.in_talk(posted.user, posted.talk_id)
        asked = next((one.approval for one in reversed(found) if one.is_pending), None)
        if asked is None:
            message = "the answer waits for an approval by the owner of the agent"
        elif posted.is_temporary:
            message = (
                f"the tool {asked.tool!r:.120} needs an approval, and a request without a talk cannot wait for it:"
                f" send the request with the header `{TALK_HEADER}: {NEW}`, or allow the tool always"
            )
        else:
            message = (
                f"the answer waits for an approval. {asked.question()} Decide it on the page, or with"
                f" `roost approvals approve {asked.approval_id}`; the answer then continues in {posted.talk_id}"
            )
        return self._error(403, "approval_required", message)

    async def _check_agent(self, talk: Talk) -> None:
        address = addresses.parse(talk.agent, talk.user_id)
        if address.user_id != talk.user_id or address.agent_id is None:
            return
        agent = await self._service.agents.get(talk.user_id, address.agent_id)
        if agent.state is State.STOPPED or agent.paused:
            how, command = ("paused", "resume") if agent.paused else ("stopped", "start")
            message = f"the agent {agent.agent_id!r} is {how}: run `roost agents {command} {agent.agent_id}`"
            raise self._error(409, f"agent_{how}", message)

    def _error(self, status: int, code: str, message: str) -> HttpError:
        """Return an error. Clients do not retry it in a talk that continues, which has the message already."""
        if self._posted.is_temporary:
            return HttpError(status, code, message)
        headers = {TALK_HEADER: self._posted.talk_id, "x-should-retry": "false"}
        return HttpError(status, code, message, headers=headers)
