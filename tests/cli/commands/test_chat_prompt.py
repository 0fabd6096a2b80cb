"""The name in each prompt and in the header: the very small model is never taken for another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from roost import Profile
from roost.brains.guide.script import GuideMemory, answer
from roost.brains.profiles import ProfileRegistry
from roost.cli.commands.chat.chat import Chat
from roost.ports.profiles import TINY
from roost.protocol.talks import ProfileReply

PROFILES = [
    Profile("gguf", "", label=TINY),
    Profile("small", "", label=f"small: {TINY}"),
    Profile("guide", "", label="Guide"),
]


def agent_of(_user: str, name: str) -> SimpleNamespace:
    return SimpleNamespace(config=SimpleNamespace(profile={"d": "small", "e": "guide"}[name]))


@pytest.mark.parametrize(
    ("profile", "agent", "is_tiny"),
    [
        (None, None, True),
        ("gguf", None, True),
        ("small", None, True),
        ("guide", None, False),
        (None, "d", True),
        (None, "agent:ann/d", True),
        (None, "e", False),
    ],
)
def test_each_prompt_names_the_very_small_model(profile: str | None, agent: str | None, is_tiny: bool) -> None:
    service = SimpleNamespace(profiles=lambda: PROFILES, agents=SimpleNamespace(get=agent_of))
    chat = Chat(service, "ann", profile, None, agent)  # type: ignore[arg-type]
    assert chat._prompt() == (f"({TINY}) > " if is_tiny else "> ")


def test_a_configured_profile_with_the_very_small_model_says_so_also_over_the_wire(tmp_path: Path) -> None:
    configured = [
        Profile("small", "gguf"),
        Profile("named", "gguf", model="smollm2"),
        Profile("big", "gguf", model="big"),
    ]
    registry = ProfileRegistry(None, configured, models=tmp_path)
    shown = {name: ProfileReply.of(registry.profile(name)).profile() for name in ("gguf", "small", "named", "big")}
    assert [profile.is_tiny for profile in shown.values()] == [True, True, True, False]
    assert shown["small"].shown == "small: Tiny demo model, often wrong"


def test_the_guide_names_the_command_of_what_the_page_has_a_button_for() -> None:
    for question, command in {
        "How do I schedule a task?": "roost schedules add first-agent",
        "start a demo meeting": "roost demo tictactoe --keep",
        "I want to create my own agent": "roost agents create first-agent",
    }.items():
        assert command in answer(question, GuideMemory(), 0).text
