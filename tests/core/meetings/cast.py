"""Participants, place and time of the meetings of the tests."""

from __future__ import annotations

from typing import Any

from roost.core.meetings.log.bodies import Called, FloorRule

MEETING = "mtg_1"
HOST, ADA, BEN, CAL, DAN = (f"agent:ann/{name}" for name in ("host", "ada", "ben", "cal", "dan"))
ANN = "user:ann"
NOON = 1_800_000_000_000
"""Time at which the meetings of the tests are called, in milliseconds since 1970."""
DEADLINE = NOON + 60_000


def call(*required: str, optional: tuple[str, ...] = (), rule: FloorRule = FloorRule.FREE, **more: Any) -> Called:
    return Called("Lunch", DEADLINE, required, optional, rule, **more)
