"""Shared by the tests of meetings: brains, ways to wait, and a Roost in virtual time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeVar

import roost
from roost import AsyncAgentService, MeetingView, Turn
from roost.testing import aeventually, simulated

T = TypeVar("T")
Told = list[tuple[str, ...]]


async def silent(turn: Turn) -> AsyncIterator[str]:
    """Listens, and keeps what it heard in its state."""
    turn.state["heard"] = [*turn.state.get("heard", []), *(f"{m.sender}: {m.content}" for m in turn.messages)]
    turn.state["turns"] = [*turn.state.get("turns", []), str(turn.meeting.why)]
    yield ""


async def talker(turn: Turn) -> AsyncIterator[str]:
    """Says its name and how often it has spoken."""
    turn.state["spoken"] = turn.state.get("spoken", 0) + 1
    yield f"{turn.agent_id} {turn.state['spoken']}"


async def player(turn: Turn) -> AsyncIterator[str]:
    """Takes the first free cell."""
    if turn.meeting.my_move:
        await turn.meeting.move({"cell": turn.meeting.state["board"].index("") + 1})
    yield ""


async def broken(turn: Turn) -> AsyncIterator[str]:
    if turn.kind:
        raise RuntimeError("it has come apart")
    yield ""


BRAINS: dict[str, roost.Brain] = {"silent": silent, "talker": talker, "player": player, "broken": broken}


def play(
    scenario: Callable[[AsyncAgentService], Awaitable[T]],
    brains: Mapping[str, roost.Brain] = BRAINS,
    limits: roost.Limits | None = None,
) -> T:
    """In virtual time."""
    with simulated(brains=brains, seed=1, limits=limits or roost.Limits()) as simulation:

        async def whole() -> T:
            return await scenario(simulation.service)

        return simulation.run(whole())


async def team(service: AsyncAgentService, *names: str, profile: str = "silent", **config: Any) -> list[str]:
    """Agents of ann's; their addresses."""
    for name in names:
        await service.agents.create("ann", name, profile=profile, retry_delay=0.01, **config)
    return [f"agent:ann/{name}" for name in names]


async def seen(
    service: AsyncAgentService,
    meeting: str,
    so: Callable[[MeetingView], object],
    by: str | None = None,
    within: float = 60.0,
) -> MeetingView:
    """Wait until it is seen so, by ann or by her agent."""

    async def look() -> MeetingView | None:
        view = await service.meetings.view("ann", meeting, seen_by=by)
        return view if so(view) else None

    found = await aeventually(look, within)
    assert found is not None
    return found


async def all_see(
    service: AsyncAgentService, meeting: str, by: list[str], so: Callable[[MeetingView], object]
) -> MeetingView:
    """Wait until all of them see it so; they see the same then."""
    views = [await seen(service, meeting, so, one) for one in by]
    assert len({alike(view) for view in views}) == 1
    return views[0]


def alike(view: MeetingView) -> str:
    """All of it that is the same for everyone."""
    return repr((view.phase, view.participants, view.words, view.refused, view.state, view.outcome, view.minutes))


def running(view: MeetingView) -> bool:
    return view.phase == "running"


def over(view: MeetingView) -> bool:
    return view.is_over


def texts(view: MeetingView) -> list[str]:
    return [word.text for word in view.words]


async def heard(service: AsyncAgentService, name: str) -> list[str]:
    return list(((await service.agents.inspect("ann", name)).turn_state or {}).get("heard", []))
