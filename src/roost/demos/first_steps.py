"""First steps that the Guide offers to a new user: an agent, a schedule, a meeting.

Each builds one thing, however often and from however many tabs it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from roost.errors import Conflict, NotFound
from roost.service import AgentService

if TYPE_CHECKING:
    from roost.client import RemoteService

    Service = AgentService | RemoteService

AGENT, PROFILE = "first-agent", "demo-notebook"
SCHEDULE, PROMPT, CRON = "morning", "Good morning", "0 9 * * *"
GAME = "tic-tac-toe"
SILENT = ("demo-host", "demo-player")
"""Profiles of agents that only take part in meetings: there is nothing to talk about with them."""
PACE = 0.9
"""Seconds per move, so that people can follow."""


@dataclass(frozen=True, slots=True)
class Built:
    """Thing that exists now: what it is and what to do next, as Markdown, and the command that shows it."""

    text: str
    command: str
    agent: str | None = None
    """Agent to talk with."""
    meeting: str | None = None


@dataclass(frozen=True, slots=True)
class FirstStep:
    """First step: its label, and the function that takes it for a user in a time zone."""

    label: str
    build: Callable[[Service, str, ZoneInfo], Built]


def create_agent(service: Service, user: str, zone: ZoneInfo) -> Built:
    is_new = _create(service, user, AGENT, PROFILE, "Your first agent: it keeps notes.")
    text = (
        f"{_begun(is_new)} an agent of your own, **{AGENT}**. It stays until you delete it, and has a card under "
        "*New talk*. Talk with it now: tell it what to remember."
    )
    return Built(text, f"roost agents show {AGENT}", AGENT)


def schedule_task(service: Service, user: str, zone: ZoneInfo) -> Built:
    _create(service, user, AGENT, PROFILE, "Your first agent: it keeps notes.")
    try:
        service.schedules.create(user, AGENT, PROMPT, cron=CRON, zone=zone.key, name=SCHEDULE)
        is_new = True
    except Conflict:
        is_new = False
    text = (
        f"{_begun(is_new)} a schedule: each morning at 9:00 ({zone.key}) **{AGENT}** gets the task *{PROMPT}*, and "
        "sends you mail with its notes, which you find under *Mail*. Tell it what to remember."
    )
    return Built(text, f"roost schedules ls --agent {AGENT}", AGENT)


def start_meeting(service: Service, user: str, zone: ZoneInfo) -> Built:
    _create(service, user, "demo-owl", "demo-host", "Hosts a demo game.")
    players = [f"agent:{user}/{name}" for name in ("demo-crow", "demo-finch")]
    for player in players:
        name = player.rpartition("/")[2]
        if _create(service, user, name, "demo-player", "Plays in a demo."):
            service.agents.set_state(user, name, {"pace": PACE, "seed": 7})
    meeting_id = service.meetings.call(
        user,
        "Tic-tac-toe",
        required=players,
        game=GAME,
        setting={"players": players},
        by=f"agent:{user}/demo-owl",
        key="first-meeting",
    )
    text = (
        "You have a meeting: **demo-crow** and **demo-finch** play tic-tac-toe, and **demo-owl** is the host. All "
        "three are agents of yours now. Watch the game, and read its minutes afterwards."
    )
    return Built(text, f"roost meetings show {meeting_id}", meeting=meeting_id)


STEPS: Mapping[str, FirstStep] = {
    "agent": FirstStep("Create a first agent", create_agent),
    "schedule": FirstStep("Schedule a task", schedule_task),
    "meeting": FirstStep("Start a demo meeting", start_meeting),
}


def _create(service: Service, user: str, name: str, profile: str, about: str) -> bool:
    """Create an agent; return False if it exists. Raise Conflict if the name belongs to an agent of another kind."""
    try:
        service.agents.create(user, name, profile=profile, description=about)
    except Conflict:
        try:
            found = service.agents.get(user, name).config.profile
        except NotFound:  # deleted meanwhile
            found = ""
        if found != profile:
            raise Conflict(f"you have another agent with the name {name!r}: delete it first, then try again") from None
        return False
    return True


def _begun(is_new: bool) -> str:
    return "You now have" if is_new else "You already have"
