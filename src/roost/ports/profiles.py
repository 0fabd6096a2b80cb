"""Profiles: named ways to think."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

TALK_OPTIONS = ("model", "temperature", "instructions")
"""What a talk may set for itself, whatever its profile says."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named way to think. `brain` is a built-in's name or `module:function`."""

    name: str
    brain: str
    description: str = ""
    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None
    base_url: str | None = None
    """Where the model is asked, if it is not at its provider's own place."""
    key: str | None = None
    """The name of the variable that holds the key."""
    thinking: str | None = None
    """How hard the model thinks before it answers: off, low, medium or high."""
    window: int | None = None
    """How many tokens the model reads at most."""
    max_tokens: int | None = None
    """How many it says at most in one step."""
    steps: int = 50
    """How often it is asked in one run at most."""
    tokens_per_run: int | None = None
    tokens_per_day: int | None = None
    seconds_per_run: float | None = None
    patience: float = 120.0
    """Seconds of silence after which the provider counts as down."""
    agent: str | None = None
    """Of an ADK brain: `module:root_agent`, or a folder as `adk` knows it."""
    recent_messages: int | None = None
    """Of an ADK brain: about how many of the newest messages the agent is shown."""
    tools: tuple[str, ...] | None = None
    """Names of tools it may use, or patterns such as `mail.*`; None: all there are."""
    tool_choice: str = "auto"
    """`required`: a model calls one of its tools before it answers."""
    label: str = ""
    """What people read in place of a name that says little."""

    @property
    def shown(self) -> str:
        return self.label or self.name

    @property
    def provider(self) -> str:
        """Who is asked: the first part of the model's name, and where; or else the profile itself."""
        if not self.model or ":" not in self.model:
            return self.name
        name = self.model.partition(":")[0]
        return f"{name} at {urlsplit(self.base_url).hostname}" if self.base_url else name

    def told(self, options: Mapping[str, Any]) -> Profile:
        """With a talk's own model, temperature and instructions; another provider is not asked at its URL."""
        other = replace(self, **{name: options[name] for name in TALK_OPTIONS if name in options})
        same = (other.model or "").partition(":")[0] == (self.model or "").partition(":")[0]
        return other if same else replace(other, base_url=None, key=None, window=None)
