"""Profiles: named configurations of a brain."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from roost.ports.tools import ClientTool

TALK_OPTIONS = ("model", "temperature", "instructions", "tool_choice")
"""Options that a talk may override."""
TINY = "Tiny demo model, often wrong"
"""End of the label of a profile with the very small model, which is shown as long as one talks with it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Named configuration of a brain. `brain` is the name of a built-in one, or `module:function`."""

    name: str
    brain: str
    description: str = ""
    model: str | None = None
    temperature: float | None = None
    instructions: str | None = None
    base_url: str | None = None
    """URL of the model, if it is not the provider's default."""
    key: str | None = None
    """Name of the variable that holds the key."""
    thinking: str | None = None
    """Reasoning effort: off, low, medium or high."""
    window: int | None = None
    """Context window in tokens."""
    max_tokens: int | None = None
    """Maximum output tokens per step."""
    steps: int = 50
    """Maximum model calls per run."""
    tokens_per_run: int | None = None
    tokens_per_day: int | None = None
    seconds_per_run: float | None = None
    patience: float = 120.0
    """Seconds without output after which the provider counts as down."""
    agent: str | None = None
    """For an ADK brain: `module:root_agent`, or an `adk` folder."""
    recent_messages: int | None = None
    """For an ADK brain: approximate number of recent messages that the agent sees."""
    tools: tuple[str, ...] | None = None
    """Names or patterns of the tools it may use, such as `mail.*`; None: all."""
    tool_choice: str = "auto"
    """`required`: the model must call a tool before it answers."""
    client_tools: tuple[ClientTool, ...] = ()
    """Tools of the program that uses the model; set by the options of a talk."""
    vision: bool = False
    """True if the model can see images of messages."""
    label: str = ""
    """Name that users see instead of `name`."""

    @property
    def shown(self) -> str:
        return self.label or self.name

    @property
    def is_tiny(self) -> bool:
        return self.label.endswith(TINY)

    @property
    def provider(self) -> str:
        """Return the provider: the prefix of the model's name, with its host; or the profile's name."""
        if not self.model or ":" not in self.model:
            return self.name
        name = self.model.partition(":")[0]
        return f"{name} at {urlsplit(self.base_url).hostname}" if self.base_url else name

    def with_options(self, options: Mapping[str, Any]) -> Profile:
        """Return the profile with the options of a talk. If the provider changes, its URL and key are dropped."""
        other = replace(self, **{name: options[name] for name in TALK_OPTIONS if name in options})
        other = replace(other, client_tools=_client_tools(options.get("client_tools", ())))
        same = (other.model or "").partition(":")[0] == (self.model or "").partition(":")[0]
        return other if same else replace(other, base_url=None, key=None, window=None)


def _client_tools(given: Sequence[Mapping[str, Any]]) -> tuple[ClientTool, ...]:
    return tuple(ClientTool(one["name"], one["description"], json.dumps(one["parameters"])) for one in given)
