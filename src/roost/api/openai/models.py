"""Models of the OpenAI-compatible API: each profile by its name, and each agent of the user as `agent:NAME`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from roost.api.error_responses import HttpError
from roost.api.openai.requests import bad_request
from roost.core.agents.agent import Agent
from roost.core.talks.talk import Talk
from roost.core.values import addresses
from roost.errors import Invalid, NotFound
from roost.service import AsyncAgentService

AGENT = "agent:"
LLM = "llm"
"""Brain whose models can call tools of a client."""
MOST_MODELS = 500
"""Models in a page."""


@dataclass(frozen=True, slots=True)
class ChatModelId:
    """Model of a request: the arguments of `create_talk_session` that choose it."""

    text: str
    profile: str | None = None
    agent: str | None = None

    @classmethod
    def parse(cls, name: str, user: str) -> ChatModelId:
        """Return the model of this name; whether it exists is not checked. Raise 404 if none can have the name."""
        if not name:
            raise unknown_model(name)
        if not name.startswith(AGENT):
            return cls(name, profile=name)
        try:
            addresses.of_agent(name, user)
        except Invalid:
            raise unknown_model(name) from None
        return cls(name, agent=name)

    def check_talk(self, talk: Talk) -> None:
        """Raise 400 if the talk is with another model."""
        if self.agent is None:
            is_same = talk.agent is None and talk.profile == self.profile
        else:
            is_same = addresses.of_agent(self.agent, talk.user_id).text == talk.agent
        if not is_same:
            partner = talk.profile if talk.agent is None else addresses.shortened(talk.agent, talk.user_id)
            raise bad_request(f"the talk is with the model {partner!r:.120}: send its name as `model`", "model")


class ChatModels:
    """Models that a user can use."""

    def __init__(self, service: AsyncAgentService) -> None:
        self._service = service

    def is_profile(self, name: str) -> bool:
        return name in self._profiles()

    def check_tools(self, model: ChatModelId) -> None:
        """Raise 400 if a model cannot call the tools of a request."""
        brains = {profile.name: profile.brain for profile in self._service.profiles()}
        if model.profile is None or brains.get(model.profile, LLM) != LLM:
            raise bad_request(
                f"the model {model.text!r:.120} cannot call tools of a client: send `tools` to a profile with the"
                f" brain `{LLM}`, or without `tools`",
                "tools",
                "unsupported_parameter",
            )

    async def get(self, user: str, name: str) -> dict[str, Any]:
        """Return a profile or an agent of the user. Raise 404 if there is none."""
        if self.is_profile(name):
            return _of_profile(name)
        if not name.startswith(AGENT):
            raise unknown_model(name)
        try:
            return _of_agent(await self._service.agents.get(user, name.removeprefix(AGENT)))
        except (NotFound, Invalid):
            raise unknown_model(name) from None

    async def list(self, user: str, limit: int, after: str | None) -> dict[str, Any]:
        """Return a page of the models: the profiles, then the agents by name."""
        names = self._profiles()
        is_agent = after is not None and after.startswith(AGENT)
        if after is not None and not is_agent and after not in names:
            raise bad_request("`after` must be the id of a model", "after")
        left = [] if is_agent else names[names.index(after) + 1 if after else 0 :]
        start = after.removeprefix(AGENT) if after is not None and is_agent else ""
        agents = await self._service.agents.list(user, limit=limit + 1, after=start)
        found = [*map(_of_profile, left), *map(_of_agent, agents)]
        page = found[:limit]
        return {"object": "list", "data": page, "has_more": len(found) > limit}

    def _profiles(self) -> Sequence[str]:
        return [profile.name for profile in self._service.profiles()]


def unknown_model(name: str) -> HttpError:
    message = f"there is no model {name!r:.120}: GET /v1/models lists them"
    return HttpError(404, "model_not_found", message, param="model")


def _of_profile(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "roost"}


def _of_agent(agent: Agent) -> dict[str, Any]:
    created = int(agent.created.timestamp())
    return {"id": f"{AGENT}{agent.agent_id}", "object": "model", "created": created, "owned_by": agent.user_id}
