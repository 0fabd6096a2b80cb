"""Audience of a broadcast: a selection of the owner's agents."""

from __future__ import annotations

from dataclasses import dataclass

from roost.core.agents.agent import State
from roost.core.values import checks, patterns


@dataclass(frozen=True, slots=True)
class Audience:
    """Selection of agents: those that match every given field, or all."""

    group: str | None = None
    profile: str | None = None
    ids: str | None = None
    """Pattern in which `*` matches any characters: `worker-*`."""
    state: State | None = None

    def admits(self, agent_id: str, groups: tuple[str, ...], profile: str, state: State) -> bool:
        return (
            (self.group is None or self.group in groups)
            and (self.profile is None or self.profile == profile)
            and (self.ids is None or patterns.text_matches(self.ids, agent_id))
            and (self.state is None or self.state is state)
        )


def audience(group: object = None, profile: object = None, ids: object = None, state: object = None) -> Audience:
    """Return an audience. Raises Invalid for the first value that cannot be used."""
    return Audience(
        None if group is None else checks.name(group, "the group"),
        None if profile is None else checks.name(profile, "the profile"),
        None if ids is None else checks.name(ids, "the pattern of agent ids"),
        None if state is None else checks.choice(state, "the state", State),
    )
