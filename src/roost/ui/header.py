"""Header of an open talk: the agent, its model, and what it does."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.talks.talk import Talk
from roost.core.values.addresses import shortened
from roost.service import AgentService
from roost.ui import tiny_label
from roost.ui.avatars import avatar

THINKING, ASKING = "Answering", "Waiting for your approval"


def draw(service: AgentService, talk: Talk, *, is_running: bool, is_asking: bool) -> None:
    """Draw one line that stays at the top."""
    name, about = _agent(service, talk)
    state = ASKING if is_asking else THINKING if is_running else ""
    mark = f'<span class="roost-state">{escape(state)}</span>' if state else ""
    text = f'<strong>{escape(name)}</strong><span class="roost-about">{escape(about)}</span>{mark}'
    st.html(f'<header class="roost-header">{avatar(name, "1.75rem")}{text}</header>')


def _agent(service: AgentService, talk: Talk) -> tuple[str, str]:
    """Return the name of the agent or profile, and its model."""
    if talk.agent:
        about = tiny_label.of_agent(service, talk) or "your agent"
        return shortened(talk.agent, talk.user_id).removeprefix("agent:"), about
    profile = next((one for one in service.profiles() if one.name == talk.profile), None)
    model = talk.options.get("model") or (profile.model if profile else None)
    return (profile.shown if profile else talk.profile), str(model or "")
