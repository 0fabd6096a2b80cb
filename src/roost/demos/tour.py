"""Tour: a small roost with content on every page, and its removal.

Everything of the tour is found again in the store: its agents by their ids and their group, the rest by these agents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from roost.core.agents.agent import Agent
from roost.core.envelopes.dead_letters import DeadLetter, LetterKind
from roost.core.envelopes.mail import Mail
from roost.core.meetings.view.shown import MeetingSummary
from roost.demos.tour_brains import BUYER, PLANNER, WATCHER
from roost.errors import Conflict, NotFound
from roost.service import AgentService

if TYPE_CHECKING:
    from roost.client import RemoteService

    Service = AgentService | RemoteService

GROUP = "roost-tour"
"""Group of the tour's agents. An agent that is taken out of it is no longer part of the tour."""
ABOUT = {
    PLANNER: "Tour: plans the day with the others, chairs their meetings, and sleeps until mail wakes it.",
    BUYER: "Tour: orders seeds, after you have approved it.",
    WATCHER: "Tour: looks at the garden each minute, and has not found the key of the shed.",
}
REPORTS = {
    PLANNER: "I have planned the day, and sent the plan by mail.",
    BUYER: "I am blocked: my order waits for an approval.",
    WATCHER: "The roof is dry. I cannot get into the shed: I do not know where its key is.",
}
SCHEDULE, ROUND, EACH_MINUTE = "each-minute", "Look at the garden", "* * * * *"
STANDUP, GAME = "Standup in the garden", "Tic-tac-toe in the garden"
TASKS = {WATCHER: (ROUND, "Water the plants in the shed"), PLANNER: ("Plan the day",), BUYER: ("Order seeds",)}
PACE = 0.7
"""Seconds per step and move, so that people can follow."""
PAGE = 200


@dataclass(frozen=True, slots=True)
class Tour:
    """Parts of the tour that exist now."""

    agents: tuple[str, ...]
    standup: str | None
    game: str | None
    schedule: str | None

    @property
    def is_built(self) -> bool:
        return bool(self.agents)


def build(service: Service, user: str, *, pace: float = PACE) -> Tour:
    """Build the tour, or the parts of it that are missing.

    Raise Conflict, before anything is created, if an agent of the user has the id of one of the tour's agents.
    """
    for name in ABOUT:
        if (found := _agent(service, user, name)) is not None and not _is_marked(found):
            raise Conflict(f"you have an agent {name!r} that is not part of the tour: delete it first, then try again")
    for name in ABOUT:
        _create(service, user, name, pace)
    _schedule(service, user)
    _start_meetings(service, user)
    for name, prompts in TASKS.items():
        for prompt in prompts:
            service.tasks.send(user, name, prompt, key=f"{GROUP} {prompt}", max_attempts=2)
    return find(service, user)


def find(service: Service, user: str) -> Tour:
    """Return what there is of the tour."""
    agents = tuple(name for name in ABOUT if _is_marked(_agent(service, user, name)))
    topics: dict[str, str] = {}
    if agents:
        called = service.meetings.list(user, participant=f"agent:{agents[0]}", limit=PAGE)
        topics = {one.topic: one.meeting_id for one in reversed(called) if _is_of_tour(user, one)}
    schedules = service.schedules.list(user, agent=WATCHER) if WATCHER in agents else []
    schedule = next((one.schedule_id for one in schedules if one.name == SCHEDULE), None)
    return Tour(agents, topics.get(STANDUP), topics.get(GAME), schedule)


def remove(service: Service, user: str) -> int:
    """Remove all that the tour has made, and return the number of removed things.

    Mail and dead letters of an agent that is no longer part of the tour stay.
    """
    found = {name: _agent(service, user, name) for name in ABOUT}
    senders = {f"agent:{user}/{name}" for name, agent in found.items() if agent is None or _is_marked(agent)}
    removed = 0
    for name, agent in found.items():
        if _is_marked(agent):
            removed += _gone(service.agents.delete, user, name)
    for letter in list(_letters(service, user)):
        if letter.envelope.get("publisher") in senders:
            removed += _gone(service.dead_letters.drop, user, letter.letter_id)
    for mail in list(_mail(service, user)):
        if mail.sender in senders:
            removed += _gone(service.mail.delete, user, mail.mail_id)
    return removed


# --- parts -------------------------------------------------------------------------------------------


def _create(service: Service, user: str, name: str, pace: float) -> None:
    options: Mapping[str, Any] = {"profile": name, "groups": [GROUP], "description": ABOUT[name]}
    try:
        service.agents.create(user, name, **options, max_concurrent_tasks=2, retry_delay=0.5)
    except Conflict:  # it is there already
        return
    service.agents.set_state(user, name, {"pace": pace, "seed": 7, "report": REPORTS[name]})


def _schedule(service: Service, user: str) -> None:
    try:
        service.schedules.create(user, WATCHER, ROUND, cron=EACH_MINUTE, name=SCHEDULE)
    except Conflict:  # it is there already
        return


def _start_meetings(service: Service, user: str) -> None:
    chair, players = f"agent:{user}/{PLANNER}", [f"agent:{user}/{name}" for name in (WATCHER, BUYER)]
    call = partial(service.meetings.call, user, required=players, by=chair)
    call(STANDUP, floor="round_robin", key=f"{GROUP} standup")
    call(GAME, game="tic-tac-toe", setting={"players": players}, key=f"{GROUP} game")


# --- finding -----------------------------------------------------------------------------------------


def _agent(service: Service, user: str, name: str) -> Agent | None:
    try:
        return service.agents.get(user, name)
    except NotFound:
        return None


def _is_marked(agent: Agent | None) -> bool:
    return agent is not None and GROUP in agent.config.groups


def _is_of_tour(user: str, meeting: MeetingSummary) -> bool:
    return meeting.creator == f"agent:{user}/{PLANNER}"


def _letters(service: Service, user: str) -> Iterator[DeadLetter]:
    """Yield the user's events that nobody took."""
    before = None
    while page := service.dead_letters.list(user, kind=LetterKind.EVENT, limit=PAGE, before=before):
        yield from page
        before = page[-1].letter_id


def _mail(service: Service, user: str) -> Iterator[Mail]:
    """Yield the mail in the user's own mailbox."""
    before = None
    while page := service.mail.inbox(user, include_archived=True, newest=True, limit=PAGE, before=before):
        yield from page
        before = page[-1].mail_id


def _gone(remove: Callable[[str, str], object], user: str, name: str) -> int:
    """Remove a thing; return 0 if somebody else has removed it meanwhile."""
    try:
        remove(user, name)
    except NotFound:
        return 0
    return 1
