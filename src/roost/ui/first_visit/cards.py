"""Start of an empty talk: the agents as cards, and suggestions for the chosen one."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import streamlit as st

from roost.demos.first_steps import SILENT
from roost.errors import RoostError
from roost.service import AgentService
from roost.ui.callbacks import uninterrupted
from roost.ui.design.avatars import avatar
from roost.ui.first_visit import connect_model
from roost.ui.sidebar.sidebar import Draft
from roost.ui.text import plain

AGENTS = 12
"""Agents of the user that have a card."""
ABOUT = 110
"""Characters of a description on a card."""
SUGGESTIONS = {
    "gguf": ("What can you do?", "Tell me a story about the sea", "Write a poem about rain"),
    "guide": ("What is Roost?", "How do I create an agent?", "Count, so that I can interrupt you", "Show me markdown"),
}
_TYPED = {"Count, so that I can interrupt you": "count", "Show me markdown": "markdown"}


@dataclass(frozen=True, slots=True)
class Card:
    """Agent or profile to talk with."""

    name: str
    label: str
    about: str
    is_agent: bool = False

    def is_chosen(self, draft: Draft) -> bool:
        return self.name == (draft.agent if self.is_agent else draft.profile) and self.is_agent is bool(draft.agent)


def draw(service: AgentService, user: str, draft: Draft, say: Callable[[str], None]) -> None:
    with st.container(key="invitation"):
        st.subheader("What would you like to talk about?", anchor=False)
        with st.container(key="cards", horizontal=True):
            for card in _cards(service, user):
                _draw(card, draft)
            connect_model.card()
        if not draft.agent:
            _suggestions(draft.profile, say)


def _cards(service: AgentService, user: str) -> Iterator[Card]:
    for profile in service.profiles():
        model = f"Model: {profile.model}." if profile.model else ""
        yield Card(profile.name, profile.shown, " ".join(filter(None, (profile.description, model))))
    try:
        agents = service.agents.list(user, limit=AGENTS)
    except RoostError:  # the page reports the problem
        agents = []
    for agent in (one for one in agents if one.config.profile not in SILENT):
        about = agent.config.description or f"Your agent with the profile {agent.config.profile}."
        yield Card(agent.agent_id, agent.agent_id, about, is_agent=True)


def _draw(card: Card, draft: Draft) -> None:
    """Draw a card: its button covers all of it."""
    chosen = card.is_chosen(draft)
    kind = "agent" if card.is_agent else "profile"
    # The key stays when another card is chosen: a new one would take the focus from the button.
    with st.container(key=f"card_{kind}_{card.name}", width=226):
        st.html(f'<span class="{"roost-chosen" if chosen else ""}">{avatar(card.label)}</span>')
        st.button(
            plain(card.label),
            key=f"choose_{kind}_{card.name}",
            type="tertiary",
            wrap=False,
            on_click=_choose,
            args=(draft, card),
        )
        st.caption(plain(_short(card.about)))


def _short(about: str) -> str:
    """Return the sentences that fit on a card, or the beginning of the first one."""
    kept = ""
    for sentence in re.findall(r".+?[.!?](?=\s|$)\s*|.+$", about, re.DOTALL):
        if len(kept) + len(sentence.strip()) > ABOUT:
            break
        kept += sentence
    return kept.strip() or (about if len(about) <= ABOUT else about[: ABOUT - 1] + "…")


@uninterrupted
def _choose(draft: Draft, card: Card) -> None:
    draft.agent = card.name if card.is_agent else None
    if not card.is_agent:
        draft.profile = card.name


def _suggestions(profile: str, say: Callable[[str], None]) -> None:
    with st.container(key="suggestions", horizontal=True):
        for suggestion in SUGGESTIONS.get(profile, ()):
            typed = _TYPED.get(suggestion, suggestion)
            st.button(suggestion, key=f"suggest_{typed}", on_click=uninterrupted(say), args=(typed,))
