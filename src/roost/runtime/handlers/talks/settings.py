"""Settings of talks: their agent, and their options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from roost.core.values import addresses, checks
from roost.errors import Invalid
from roost.runtime.context import RuntimeContext
from roost.stores.sql.agents import agents


async def reached(context: RuntimeContext, user_id: str, agent: str, profile: str | None) -> str:
    """Return the key of an agent that this user may talk with: one's own, or a shared one."""
    if profile is not None:
        raise Invalid("give the profile or the agent to talk with, not both: an agent has its own profile")
    address = addresses.of_agent(agent, user_id)
    await context.store.read(agents.recipient, user_id, address.key, False)
    return address.key


def options_json(options: Mapping[str, Any]) -> str:
    """Return the model, temperature and instructions of a talk, as they are stored."""
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
        else:
            raise Invalid(f"the option {name!r:.80} is not known: use model, temperature or instructions")
    return json.dumps(kept)
