"""Label of the very small model, for talks with an agent that uses it."""

from __future__ import annotations

from contextlib import suppress

from roost.core.talks.talk import Talk
from roost.core.values.addresses import shortened
from roost.errors import RoostError
from roost.ports.profiles import TINY
from roost.service import AgentService


def of_agent(service: AgentService, talk: Talk) -> str:
    """Return the label if the agent of the talk uses the very small model, otherwise nothing."""
    tiny = {profile.name for profile in service.profiles() if profile.is_tiny}
    name = shortened(talk.agent or "", talk.user_id).removeprefix("agent:")
    with suppress(RoostError):  # an agent of another user, or deleted
        if tiny and service.agents.get(talk.user_id, name).config.profile in tiny:
            return TINY
    return ""
