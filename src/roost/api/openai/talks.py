"""Talks behind requests: a temporary one that is deleted with the answer, a new one, or one that is continued."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import Any

import anyio

from roost.api.error_responses import HttpError
from roost.api.openai.messages import ChatMessage, Conversation
from roost.api.openai.models import ChatModelId, ChatModels, unknown_model
from roost.api.openai.requests import NEW
from roost.core.talks.talk import BusyPolicy, Talk
from roost.errors import Invalid, NotFound, RoostError
from roost.service import AsyncAgentService

log = logging.getLogger("roost.api.openai")

TITLE = "API request"
"""Title of a temporary talk, which is listed until its answer is complete."""
TalkOptions = dict[str, Any]
"""Options of a talk by name."""
TOOLS, CHOICE = "client_tools", "tool_choice"
CLEANUP = 10.0
"""Seconds in which a temporary talk is deleted."""
_NEXT_ANSWER_IS_OURS = (BusyPolicy.INTERRUPT, BusyPolicy.ROLLBACK, BusyPolicy.REJECT)


@dataclass(frozen=True, slots=True)
class PostedMessage:
    """New message of a request in its talk; the answer follows after number `seq`."""

    user: str
    talk_id: str
    seq: int
    after: str | None
    """Cursor from before the message."""
    is_temporary: bool


class ChatTalks:
    """Opens the talks of requests."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service

    async def post(
        self, user: str, model: ChatModelId, conversation: Conversation, options: TalkOptions, mark: str | None
    ) -> PostedMessage:
        """Add the new message to its talk, which is created if the request continues none; nothing stays on an error.

        `mark` is the id of a talk, `new`, or None for a temporary talk.
        """
        if mark is not None and mark != NEW:
            return await self._continue(user, model, conversation, options, mark)
        title = "" if mark == NEW else TITLE
        talk_id = await self._create(user, model, conversation, options, title)
        try:
            after = await self._cursor(user, talk_id) if conversation.earlier else None
            seq = await self._add(user, talk_id, conversation.new, None)
        except BaseException:
            await self.delete(user, talk_id)
            raise
        return PostedMessage(user, talk_id, seq, after, is_temporary=mark is None)

    async def delete(self, user: str, talk_id: str) -> None:
        """Delete a talk, which stops its answer; also if the request was cancelled."""
        with anyio.move_on_after(CLEANUP, shield=True) as limit:
            try:
                await self._service.delete(user, talk_id)
            except NotFound:
                return
            except RoostError as error:
                log.warning("temporary talk not deleted: %s", error, extra={"talk": talk_id})
        if limit.cancelled_caught:
            log.warning("temporary talk not deleted within %s s", CLEANUP, extra={"talk": talk_id})

    async def _create(
        self, user: str, model: ChatModelId, conversation: Conversation, options: TalkOptions, title: str
    ) -> str:
        """Create a talk with the earlier messages of the request."""
        try:
            if conversation.earlier or TOOLS in options:
                text = await asyncio.to_thread(conversation.transcript, title, options)
                return await self._service.import_talk(user, text, profile=model.profile, agent=model.agent)
            return await self._service.create_talk_session(
                user,
                profile=model.profile,
                agent=model.agent,
                title=title or None,
                **options,
            )
        except NotFound:
            raise unknown_model(model.text) from None  # of an agent
        except Invalid:
            if model.profile is not None and not ChatModels(self._service).is_profile(model.profile):
                raise unknown_model(model.text) from None
            raise

    async def _continue(
        self, user: str, model: ChatModelId, conversation: Conversation, options: TalkOptions, talk_id: str
    ) -> PostedMessage:
        try:
            talk = await self._service.get_session(user, talk_id)
        except (NotFound, Invalid) as error:
            raise HttpError(404, "talk_not_found", str(error)) from None
        model.check_talk(talk)
        await self._configure(talk, options)
        # Under another policy the next answer may be that to an earlier message.
        busy = None if talk.busy in _NEXT_ANSWER_IS_OURS else BusyPolicy.REJECT
        after = await self._cursor(user, talk_id)
        seq = await self._add(user, talk_id, conversation.new, busy)
        return PostedMessage(user, talk_id, seq, after, is_temporary=False)

    async def _configure(self, talk: Talk, options: TalkOptions) -> None:
        """Apply the options of a request to its talk; others stay, except for the tools of an earlier request."""
        others = {name: value for name, value in talk.options.items() if name not in (TOOLS, CHOICE)}
        if others | options != talk.options:
            await self._service.configure(talk.user_id, talk.talk_session_id, options=others | options)

    async def _cursor(self, user: str, talk_id: str) -> str:
        return (await self._service.get_messages(user, talk_id, limit=1)).cursor

    async def _add(self, user: str, talk_id: str, message: ChatMessage, busy: BusyPolicy | None) -> int:
        files = []
        for file in message.files:
            data = await asyncio.to_thread(file.data)
            files.append((await self._service.add_attachment(user, file.name, data)).attachment_id)
        posted = await self._service.add_message(user, talk_id, message.text, busy=busy, attachments=files)
        return posted.seq
