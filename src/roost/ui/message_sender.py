"""Sending of messages from a page, without duplicates."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from zlib import crc32

from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.sidebar.sidebar import Draft


@dataclass(slots=True)
class MessageSender:
    """Sender of the messages of one run of the page, to the open talk or to a new one.

    An event that Streamlit delivers twice creates no second message and no second talk. The talk is kept here and not
    read from the URL, which the browser may still send unchanged.
    """

    service: AgentService
    user: str
    draft: Draft
    talk_id: str | None = None
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    seq: int = 0
    """Number of the last message that was sent."""

    def send(
        self, text: str, attachments: Sequence[str] = (), *, key: str | None = None, busy: str | None = None
    ) -> str:
        """Add the message to the talk or to a new one; return the id. A rejected message leaves no new talk.

        `attachments`: ids of files that the browser has uploaded. Without a `key`, the same text and files sent again
        by this run of the page are the same message.
        """
        talk_id = self.talk_id or self._begin()
        try:
            key = key or self._key(text, attachments)
            sent = self.service.add_message(self.user, talk_id, text, key=key, busy=busy, attachments=attachments)
            self.seq = sent.seq
        except RoostError:
            if self.talk_id is None:
                self._give_up(talk_id)
            raise
        self.talk_id = talk_id
        return talk_id

    def _key(self, text: str, attachments: Sequence[str]) -> str:
        content = "\0".join((text, *attachments))
        return f"{self.mark}.{crc32(content.encode(errors='replace')):08x}"

    def _begin(self) -> str:
        draft = self.draft
        profile = None if draft.agent else draft.profile
        return self.service.create_talk_session(
            self.user, profile=profile, agent=draft.agent, busy=draft.busy, **draft.options
        )

    def _give_up(self, talk_id: str) -> None:
        with suppress(RoostError):
            self.service.delete(self.user, talk_id)
