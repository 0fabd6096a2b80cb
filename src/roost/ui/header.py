"""Header of an open talk: the agent, its model, tokens and cost, and what it does."""

from __future__ import annotations

from html import escape

import streamlit as st

from roost.core.limits.usage import Usage
from roost.core.talks.talk import Talk
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.design.avatars import avatar
from roost.ui.first_visit import tiny_label
from roost.ui.sidebar.sidebar import agent_name

THINKING, ASKING, OFFLINE = "Answering", "Waiting for your approval", "Offline"


def draw(service: AgentService, talk: Talk, *, is_running: bool, is_asking: bool) -> None:
    """Draw one line that stays at the top."""
    name, about = _agent(service, talk)
    state = OFFLINE if service.health().problem else ASKING if is_asking else THINKING if is_running else ""
    parts = [("roost-about", about), ("roost-usage", used(_usage(service, talk))), ("roost-state", state)]
    spans = "".join(f'<span class="{kind}">{escape(text)}</span>' for kind, text in parts if text)
    st.html(f'<header class="roost-header">{avatar(name, "1.75rem")}<strong>{escape(name)}</strong>{spans}</header>')


def _agent(service: AgentService, talk: Talk) -> tuple[str, str]:
    """Return the name of the agent or profile, and its model."""
    if talk.agent:
        return agent_name(talk), tiny_label.of_agent(service, talk) or "your agent"
    profile = next((one for one in service.profiles() if one.name == talk.profile), None)
    model = talk.options.get("model") or (profile.model if profile else None)
    return (profile.shown if profile else talk.profile), str(model or "")


def _usage(service: AgentService, talk: Talk) -> Usage:
    try:
        return service.get_usage(talk.user_id, talk.talk_session_id)
    except RoostError:  # the page reports it
        return Usage()


def used(usage: Usage) -> str:
    """Return tokens and cost for people: `1,204 tokens · $0.03`."""
    if not usage.tokens:
        return ""
    tokens = f"{usage.tokens:,} tokens"
    if usage.cost is None:
        return tokens
    return f"{tokens} · ${usage.cost:.2f}" if usage.cost >= 0.01 or not usage.cost else f"{tokens} · under $0.01"
