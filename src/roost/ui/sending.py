"""Sending from a page: what is handled twice is sent once."""

from __future__ import annotations

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from zlib import crc32

from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.sidebar import Draft


@dataclass(slots=True)
class Line:
    """The line to type in, of one drawing of the page: the same words sent again from it are the same message.

    So a click that Streamlit hands over twice makes no second message and no second talk. The talk is remembered here
    and not taken from the address, which the browser may still send as it was before.
    """

    service: AgentService
    user: str
    draft: Draft
    talk_id: str | None = None
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def send(self, text: str) -> str:
        """Add the message to the talk, or to a new one, whose id this gives. What is refused leaves no talk behind."""
        talk_id = self.talk_id or self._begin()
        try:
            self.service.add_message(self.user, talk_id, text, key=self._key(text))
        except RoostError:
            if self.talk_id is None:
                self._give_up(talk_id)
            raise
        self.talk_id = talk_id
        return talk_id

    def _key(self, text: str) -> str:
        return f"{self.mark}.{crc32(text.encode(errors='replace')):08x}"

    def _begin(self) -> str:
        draft = self.draft
        return self.service.create_talk_session(self.user, profile=draft.profile, busy=draft.busy, **draft.options)

    def _give_up(self, talk_id: str) -> None:
        with suppress(RoostError):
            self.service.delete(self.user, talk_id)
