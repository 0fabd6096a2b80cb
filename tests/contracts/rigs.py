"""Brains on the bench: each with a model behind it that does what a test tells it.

A brain takes part in the contract by a line in `RIGS`. What cannot be said of it (`without`) says why.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import roost
from roost.brains.gguf import model as gguf
from roost.brains.profiles import ProfileRegistry
from roost.service import AgentService
from roost.testing.provider import Act, Call, Cut, Provider, Refuse, Wait
from roost.wiring import open_roost
from tests.brains.gguf.led_model import PROGRAM, gguf_file
from tests.brains_for_tests import until
from tests.conftest import ENVIRONMENT, QUICK
from tests.contracts.leading import Leader

FAULTS = ("provider", "rate_limit", "bad_key", "too_long", "model")
"""Faults that every brain with a provider distinguishes."""


class Rig(ABC):
    """One brain and its model. `play` lays out what the model does when it is asked next: see `testing.provider`."""

    without: frozenset[str] = frozenset()
    """Parts of the contract that this brain has nothing to do with: `faults`, `retry`, `tools`."""

    models = Path("models")
    """The folder with the models on this machine."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack

    @property
    @abstractmethod
    def profile(self) -> roost.Profile: ...

    def brains(self) -> Mapping[str, roost.Brain]:
        """Functions that its profile needs."""
        return {}

    @abstractmethod
    def play(self, *acts: Act) -> None: ...

    def fail(self, fault: str) -> None:
        """The model fails so whenever it is asked."""
        raise NotImplementedError

    @property
    @abstractmethod
    def asked(self) -> list[str]:
        """All that the model was shown, each time that it was asked, as one text."""

    @property
    def offered(self) -> list[str]:
        """The tools that the model was offered when it was first asked."""
        raise NotImplementedError

    def set_up(self, folder: Path) -> str:
        """Its profile as it is written into a `roost.toml` in this folder, with what has to be there beside it."""
        raise NotImplementedError

    def open(
        self, path: Path, *, tools: Sequence[roost.Tool] = (), limits: roost.Limits = QUICK, **changes: Any
    ) -> AgentService:
        """A service whose only profile, with these changes, is the rig's."""
        profile = replace(self.profile, name="rig", **changes)
        shelf = ProfileRegistry(self.brains(), [profile], "rig", models=self.models)
        opened = open_roost(f"sqlite:///{path / 'roost.db'}", shelf, limits, tools=tools)
        return self.stack.enter_context(AgentService(opened))


class FunctionRig(Rig):
    """A brain of one's own, without any model."""

    without = frozenset({"faults", "prompt", "retry", "tools"})

    def __init__(self, stack: ExitStack) -> None:
        super().__init__(stack)
        self._plays: list[tuple[Act, ...]] = []
        self._asked: list[str] = []

    profile = roost.Profile("function", "function")

    def brains(self) -> Mapping[str, roost.Brain]:
        return {"function": self._think}

    def play(self, *acts: Act) -> None:
        self._plays.append(acts)

    @property
    def asked(self) -> list[str]:
        return self._asked

    async def _think(self, turn: roost.Turn) -> AsyncIterator[str]:
        shown = [f"{m.content} {m.status}" for m in turn.history]
        self._asked.append("\n".join([*shown, *(m.content for m in turn.messages)]))
        for act in self._plays.pop(0) if self._plays else ("ok",):
            if isinstance(act, str):
                yield act
            elif isinstance(act, Wait):
                await until(act.until)
            elif isinstance(act, Cut):
                raise ConnectionError("cut off")


def _names(offered: Any) -> Iterator[str]:
    """Yield each name in it, however a provider wraps it."""
    for one in offered if isinstance(offered, list) else [offered]:
        if isinstance(one, dict) and isinstance(one.get("name"), str):
            yield one["name"]
        elif isinstance(one, dict):
            for wrapped in one.values():
                yield from _names(wrapped)


class ProviderRig(Rig):
    """The brain `llm`, asking a provider on this machine."""

    model = "openai:some-model"
    refusals: Mapping[str, Refuse] = {
        "provider": Refuse(503, "overloaded"),
        "rate_limit": Refuse(429, "slow down", "rate_limit_exceeded", {"Retry-After": "3600"}),
        "bad_key": Refuse(401, "bad key", "invalid_api_key"),
        "too_long": Refuse(400, "too long", "context_length_exceeded"),
        "model": Refuse(404, "no such model", "model_not_found"),
    }

    def __init__(self, stack: ExitStack) -> None:
        super().__init__(stack)
        self.provider = stack.enter_context(Provider())

    @property
    def profile(self) -> roost.Profile:
        return roost.Profile("llm", "llm", model=self.model, base_url=self.provider.url)

    def set_up(self, folder: Path) -> str:
        self.stack.enter_context(pytest.MonkeyPatch.context()).setenv("RIG_KEY", "sk-rig")
        return f'brain = "llm"\nmodel = "{self.model}"\nbase_url = "{self.provider.url}"\nkey = "RIG_KEY"'

    def play(self, *acts: Act) -> None:
        self.provider.plays(*acts)

    def fail(self, fault: str) -> None:
        for _ in range(10):
            self.provider.plays(self.refusals[fault])

    @property
    def asked(self) -> list[str]:
        return [json.dumps(body["messages"], ensure_ascii=False) for body in self.provider.asked]

    @property
    def offered(self) -> list[str]:
        return list(_names(self.provider.asked[0].get("tools", [])))


class AnthropicRig(ProviderRig):
    model = "anthropic:some-model"
    refusals: Mapping[str, Refuse] = {
        "provider": Refuse(529, "overloaded", "overloaded_error"),
        "rate_limit": Refuse(429, "slow down", "rate_limit_error", {"Retry-After": "3600"}),
        "bad_key": Refuse(401, "bad key", "authentication_error"),
        "too_long": Refuse(400, "prompt is too long: 300000 tokens > 200000 maximum", "invalid_request_error"),
        "model": Refuse(404, "model: some-model", "not_found_error"),
    }


class GgufRig(Rig):
    """The brain `gguf`; the library in its process asks this one what to say: see `brains/gguf/led_model.py`."""

    without = frozenset({"faults", "retry"})
    profile = roost.Profile("gguf", "gguf")

    def __init__(self, stack: ExitStack) -> None:
        super().__init__(stack)
        folder = Path(stack.enter_context(TemporaryDirectory(dir="/tmp")))  # the path of a socket is short
        (folder / "smollm2.gguf").write_bytes(gguf_file("{{ tools }}"))
        self.models = folder
        self._leader = stack.enter_context(Leader(folder / "socket"))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(gguf, "PROGRAM", PROGRAM)
        patch.setenv("ROOST_LEADER", str(folder / "socket"))
        patch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])

    def set_up(self, folder: Path) -> str:
        return f'brain = "gguf"\nmodel = "{self.models}/smollm2.gguf"'

    @property
    def offered(self) -> list[str]:
        return list(_names(json.loads(self._leader.asked[0]).get("tools", [])))

    def play(self, *acts: Act) -> None:
        self._leader.plays.append(acts)

    @property
    def asked(self) -> list[str]:
        return self._leader.asked


class ResponsesRig(ProviderRig):
    model = "openai-responses:some-model"

    @property
    def asked(self) -> list[str]:
        return [json.dumps(body["input"], ensure_ascii=False) for body in self.provider.asked]


class GoogleRig(ProviderRig):
    model = "google:some-model"
    refusals: Mapping[str, Refuse] = {
        "provider": Refuse(503, "overloaded", "UNAVAILABLE"),
        "rate_limit": Refuse(429, "slow down", "RESOURCE_EXHAUSTED", {"Retry-After": "3600"}),
        "bad_key": Refuse(401, "bad key", "UNAUTHENTICATED"),
        "too_long": Refuse(
            400,
            "The input token count (2000000) exceeds the maximum number of tokens allowed (1000000).",
            "INVALID_ARGUMENT",
        ),
        "model": Refuse(404, "models/some-model is not found", "NOT_FOUND"),
    }

    @property
    def asked(self) -> list[str]:
        return [json.dumps(body["contents"], ensure_ascii=False) for body in self.provider.asked]


RIGS: dict[str, type[Rig]] = {
    "function": FunctionRig,
    "llm-openai": ProviderRig,
    "llm-anthropic": AnthropicRig,
    "llm-responses": ResponsesRig,
    "llm-google": GoogleRig,
    "gguf": GgufRig,
}

from tests.contracts.adk_rig import AdkRig  # noqa: E402 — it is one of these itself

RIGS["adk"] = AdkRig

__all__ = ["FAULTS", "RIGS", "Act", "Call", "Cut", "Refuse", "Rig", "Wait"]
