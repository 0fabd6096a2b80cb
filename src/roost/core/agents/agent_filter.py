"""Filter of a list of agents: by state, flags, profile and text."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.agents.agent import FAILING, Agent, State
from roost.core.values import checks


@dataclass(frozen=True, slots=True)
class AgentFilter:
    """Conditions that an agent must all meet; None admits every agent."""

    state: State | None = None
    paused: bool | None = None
    failing: bool | None = None
    profile: str | None = None
    """Empty for agents that have the default profile."""
    text: str | None = None
    """Part of the id or of the description, case-insensitive."""

    def admits(self, agent: Agent) -> bool:
        config = agent.config
        text = None if self.text is None else self.text.casefold()
        return (
            self.state in (None, agent.state)
            and self.paused in (None, agent.paused)
            and self.failing in (None, agent.error_count >= FAILING)
            and self.profile in (None, config.profile)
            and (text is None or text in agent.agent_id.casefold() or text in config.description.casefold())
        )


def agent_filter(
    state: object = None, paused: object = None, failing: object = None, profile: object = None, text: object = None
) -> AgentFilter:
    """Return a filter. Raises Invalid for the first value that cannot be used."""
    return AgentFilter(
        None if state is None else checks.choice(state, "the state", State),
        None if paused is None else checks.flag(paused, "`paused`"),
        None if failing is None else checks.flag(failing, "`failing`"),
        profile if profile is None or profile == "" else checks.name(profile, "the profile"),
        None if text is None else checks.name(text, "the text"),
    )
