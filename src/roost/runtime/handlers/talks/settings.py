"""Settings of talks: their agent, and their options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from roost.core.values import addresses, checks
from roost.errors import Invalid
from roost.runtime.context import RuntimeContext
from roost.stores.sql.agents import agents

MOST_TOOLS = 128
TOOL_CHARS = 200_000
"""Characters of all tools of a talk."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class ToolChoice(StrEnum):
    AUTO = "auto"
    REQUIRED = "required"


async def reached(context: RuntimeContext, user_id: str, agent: str, profile: str | None) -> str:
    """Return the key of an agent that this user may talk with: one's own, or a shared one."""
    if profile is not None:
        raise Invalid("give the profile or the agent to talk with, not both: an agent has its own profile")
    address = addresses.of_agent(agent, user_id)
    await context.store.read(agents.recipient, user_id, address.key, False)
    return address.key


def options_json(options: Mapping[str, Any]) -> str:
    """Return the model, temperature, instructions and tools of a talk, as they are stored."""
    if not isinstance(options, Mapping):
        raise Invalid(f"the options must be a mapping of model, temperature and instructions, not {options!r:.80}")
    kept: dict[str, Any] = {}
    for name, value in options.items():
        if value is None:
            continue
        if name == "temperature":
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 2:
                raise Invalid(f"the temperature must be a number from 0 to 2, not {value!r:.80}")
            kept[name] = float(value)
        elif name == "model":
            kept[name] = checks.name(value, "the model")
        elif name == "instructions":
            kept[name] = checks.text(value, "the text of the instructions", most=100_000)
        elif name == "client_tools":
            kept[name] = _client_tools(value)
        elif name == "tool_choice":
            kept[name] = checks.choice(value, "the tool choice", ToolChoice).value
        else:
            known = "model, temperature, instructions, client_tools or tool_choice"
            raise Invalid(f"the option {name!r:.80} is not known: use {known}")
    return json.dumps(kept)


def _client_tools(value: object) -> list[dict[str, Any]]:
    """Return the tools of the program that uses a talk; raise Invalid for any that no model could be offered."""
    if not isinstance(value, list | tuple) or len(value) > MOST_TOOLS:
        raise Invalid(f"the tools must be a list of at most {MOST_TOOLS}")
    found = [_client_tool(one, f"tools[{number}]") for number, one in enumerate(value)]
    if len({tool["name"] for tool in found}) < len(found):
        raise Invalid("two of the tools have the same name: give each its own")
    if len(json.dumps(found)) > TOOL_CHARS:
        raise Invalid(f"the tools are too long: describe them in at most {TOOL_CHARS:,} characters")
    return found


def _client_tool(one: object, where: str) -> dict[str, Any]:
    if not isinstance(one, Mapping) or one.keys() != {"name", "description", "parameters"}:
        raise Invalid(f"{where} must have a name, a description and parameters")
    name, description, parameters = one["name"], one["description"], one["parameters"]
    if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
        raise Invalid(f"{where}.name must have 1 to 64 letters, digits, _ and -, not {name!r:.80}")
    if not isinstance(description, str):
        raise Invalid(f"{where}.description must be a text")
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise Invalid(f"{where}.parameters must be the JSON schema of an object")
    return {"name": name, "description": description, "parameters": dict(parameters)}
