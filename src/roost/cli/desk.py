"""What the commands for agents and all that belongs to them share: a service, a user, and how things are named."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from roost.cli.find import Service, service_of, user_of
from roost.cli.options import settings_of
from roost.cli.tables import listing
from roost.cli.text import line
from roost.core.agents import Agent, State
from roost.errors import Invalid, NotFound
from roost.protocol.faces import shown
from roost.service import AgentService

T = TypeVar("T")
SHORT = 8
NEWEST = 1_000
MOST_CANDIDATES = 10
LATER = {State.STOPPED: "start", State.SLEEPING: "wake"}
"""In which states an agent begins nothing, and what ends them."""


@contextmanager
def opened(store: str | None, config: Path | None, *, hosting: bool = False) -> Iterator[tuple[Service, str]]:
    """The service, and the user of the command line. `hosting`: the command waits for what agents do."""
    settings = settings_of(config, store=store)
    with service_of(settings, hosting=hosting) as service:
        yield service, user_of(settings)


def note_waiting(service: Service, text: str = "agents hear of it when `roost up` runs") -> None:
    """Where nothing runs on the store, say that it waits."""
    if isinstance(service, AgentService):
        print(f"roost: nothing runs on this store: {text}", file=sys.stderr)


def note_rest(agent: Agent) -> bool:
    """Whether an agent sleeps, is paused or stopped, and so does nothing now; if it is so, say it."""
    if not agent.paused and agent.state not in LATER:
        return False
    name = line(agent.agent_id)
    state, verb = ("paused", "resume") if agent.paused else (agent.state, LATER[agent.state])
    told = f"{name} is {state}: it does this when that is over, or after `roost agents {verb} {name}`"
    print(f"roost: {told}", file=sys.stderr)
    return True


def note_rest_of(service: Service, user: str, agent: str) -> None:
    """The same of the one with this id; what is someone else's, who shares it, is not looked at."""
    with suppress(NotFound):
        note_rest(service.agents.get(user, agent.removeprefix("agent:")))


def check_agent(service: Service, user: str, agent: str | None, listed: Sequence[object]) -> None:
    """Where nothing of an agent is found, raise NotFound if there is no such agent."""
    if agent is not None and not listed:
        service.agents.get(user, agent.removeprefix("agent:").removeprefix(f"{user}/"))


def missing(agent: Agent) -> str:
    """Of one whose profile is not known where it was looked at."""
    return f"the profile {agent.config.profile!r} of {agent.agent_id} is not known here"


def show(value: Any, text: Callable[[], Sequence[str] | Iterator[str]], *, as_json: bool) -> None:
    """As JSON, or else as these lines."""
    if as_json:
        print(json.dumps(shown(value), indent=2))
    else:
        for row in text():
            print(row)


def show_list(
    listed: Sequence[T], headings: Sequence[str], row: Callable[[T], Sequence[str]], nothing: str, *, as_json: bool,
    whole: str = "ID",
) -> None:  # fmt: skip
    """As JSON, or else as a table with a row each, or the sentence that says that there are none."""
    show(listed, lambda: listing(listed, headings, row, nothing, whole), as_json=as_json)


def short(full: str) -> str:
    """The end of an id: ids begin with the time, and end with what tells them apart."""
    return full[-SHORT:]


def found(part: str, what: str, get: Callable[[str], T], newest: Callable[[], list[T]], name: Callable[[T], str]) -> T:
    """The one with this id, or else the only one of the newest with this part in its id."""
    try:
        return get(part)
    except NotFound as error:
        matching = [one for one in newest() if part.lower() in name(one).lower()]
        if not matching:
            raise error from None
    return only(matching, part, what, lambda one: line(name(one)))


def only(matching: list[T], part: str, what: str, row: Callable[[T], str]) -> T:
    """The one of them; where there are more, Invalid tells which, with a row each."""
    if len(matching) > 1:
        rows = [f"  {row(one)}" for one in matching[:MOST_CANDIDATES]]
        more = [f"  and {len(matching) - MOST_CANDIDATES} more"] if len(matching) > MOST_CANDIDATES else []
        raise Invalid(
            "\n".join([f"{len(matching)} {what} have {part!r:.80} in their id; say more of it:", *rows, *more])
        )
    return matching[0]
