"""Budgets: limits on the total work that one origin may cause. Hops limit the depth.

An origin is a task, a message, an event or a tick that a user, a program or a schedule has started. Everything that
follows from it carries its id.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from roost.core.failures.faults import Fault
from roost.core.limits.limits import Limits
from roost.errors import BrainFailed

SECOND = 2
"""Hops from which messages and runs count: a turn may reach many agents that each act once; that is not a loop."""
PARTS = 20
"""Spending is stored each time another twentieth of a budget is used."""


class Resource(IntEnum):
    RUNS = 0
    MESSAGES = 1
    MEETINGS = 2
    TOKENS = 3

    @property
    def limit(self) -> str:
        """Return the name of the limit."""
        return f"{self.name.lower()}_per_origin"


@dataclass(slots=True)
class Spent:
    """Resources that one origin has used so far."""

    counts: list[int]
    is_reported: bool = False
    """True if other agents have heard that it was cut off."""


def bounds(limits: Limits) -> tuple[int, ...]:
    return tuple(int(getattr(limits, resource.limit)) for resource in Resource)


def overspent(root: str, resource: Resource, most: int) -> BrainFailed:
    what = resource.name.lower()
    return BrainFailed(
        f"{root!r:.80} has reached its limit of {most:,} {what}",
        kind=Fault.BUDGET,
        advice="make sure that agents do not trigger each other endlessly,"
        f" or raise the limit {resource.limit} ({most:,})",
    )
