"""Attending: what a turn in a meeting is given, and what it does there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roost.core.agents import Invitations
from roost.core.envelopes import Envelope
from roost.core.meetings.effects import meeting_of
from roost.ports import Meeting
from roost.runtime.shop import Shop

if TYPE_CHECKING:
    from roost.core.agents import AgentConfig


async def attended(shop: Shop, participant: str, envelope: Envelope, config: AgentConfig) -> Meeting | None:
    """The meeting that a turn is about, as the participant sees it; None: it takes part in no such one any more."""
    seated = await shop.store.read(shop.statements.meetings.seated, participant, meeting_of(envelope.lane))
    return Meeting(seated, is_asked=config.invitations is Invitations.ASK) if seated is not None else None
