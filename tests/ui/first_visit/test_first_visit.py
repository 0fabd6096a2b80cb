"""Cards of agents: what is written on them, and the pictures made of their names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.ports import Profile
from roost.ports.profiles import TINY
from roost.ui import header
from roost.ui.design.avatars import avatar, initials
from roost.ui.first_visit import cards


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ("Short.", "Short."),
        ("One. Two! Three?", "One. Two! Three?"),
        ("First sentence. " + "word " * 40, "First sentence."),
        ("word " * 40, ("word " * 40)[: cards.ABOUT - 1] + "…"),
        ("Version 1.5 of it.", "Version 1.5 of it."),
        ("", ""),
    ],
)
def test_a_card_has_the_sentences_that_fit(about: str, shown: str) -> None:
    assert cards._short(about) == shown


@given(st.text(max_size=400))
def test_any_description_is_short_on_a_card(about: str) -> None:
    assert len(cards._short(about)) <= cards.ABOUT


@pytest.mark.parametrize(
    ("name", "letters"),
    [("guide", "G"), ("night watch", "NW"), ("a-b-c", "AB"), ("", "?"), ("<b>", "B"), ("日本", "日"), ("!!", "?")],
)
def test_an_avatar_has_the_first_letters_of_its_name(name: str, letters: str) -> None:
    assert initials(name) == letters


@given(st.text(max_size=40))
def test_any_name_has_an_avatar_of_letters_only(name: str) -> None:
    html = avatar(name)
    assert html == avatar(name)
    assert html.count("<") == 2


@pytest.mark.parametrize(("profile", "about"), [("gguf", "Tiny demo model, often wrong"), ("guide", "your agent")])
def test_the_header_of_an_agent_with_the_very_small_model_says_so(profile: str, about: str) -> None:
    agent = SimpleNamespace(config=SimpleNamespace(profile=profile))
    service: Any = SimpleNamespace(
        profiles=lambda: [Profile("gguf", "gguf", label=TINY)],
        agents=SimpleNamespace(get=lambda user, name: agent if (user, name) == ("ann", "d") else None),
    )
    talk: Any = SimpleNamespace(agent="agent:ann/d", user_id="ann", profile="", options={})
    assert header._agent(service, talk) == ("d", about)
