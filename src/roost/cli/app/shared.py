"""Helpers of many commands: opening the service, notes on standard error, and lookup by id."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from roost.cli.app.connect import Service, current_user, is_local, open_service
from roost.cli.app.options import load_settings
from roost.cli.render.text import single_line
from roost.core.agents.agent import Agent, State
from roost.errors import Invalid, NotFound

T = TypeVar("T")
NEWEST = 1_000
MOST_CANDIDATES = 10
LATER = {State.STOPPED: "start", State.SLEEPING: "wake"}
"""States in which an agent starts no work, and the command that ends each."""


@contextmanager
def open_session(store: str | None, config: Path | None, *, hosting: bool = False) -> Iterator[tuple[Service, str]]:
    """Open the service and yield it with the current user. With `hosting`, agents run in this process."""
    settings = load_settings(config, store=store)
    with open_service(settings, hosting=hosting) as service:
        yield service, current_user(settings)


def note_not_running(service: Service, text: str = "agents receive it when `roost up` runs") -> None:
    """Print a note if no server runs on this store."""

    if is_local(service):
        print(f"roost: Roost is not running: {text}", file=sys.stderr)


def note_inactive(agent: Agent) -> bool:
    """Print a note if an agent sleeps, is paused or stopped; return True if it printed one."""
    if not agent.paused and agent.state not in LATER:
        return False
    name = single_line(agent.agent_id)
    state, verb = ("paused", "resume") if agent.paused else (agent.state, LATER[agent.state])
    note = f"{name} is {state}: it starts this later, or after `roost agents {verb} {name}`"
    print(f"roost: {note}", file=sys.stderr)
    return True


def note_if_inactive(service: Service, user: str, agent: str) -> None:
    """Print a note if the agent with this id is inactive; skip agents of other users."""
    with suppress(NotFound):
        note_inactive(service.agents.get(user, agent.removeprefix("agent:")))


def check_agent(service: Service, user: str, agent: str | None, listed: Sequence[object]) -> None:
    """Raise NotFound if nothing was listed because there is no such agent."""
    if agent is not None and not listed:
        service.agents.get(user, agent.removeprefix("agent:").removeprefix(f"{user}/"))


def missing_profile(agent: Agent) -> str:
    """Return the sentence for an agent whose profile is not configured here."""
    return f"the profile {agent.config.profile!r} of {agent.agent_id} is not configured here"


def find_by_id(
    part: str, what: str, get: Callable[[str], T], newest: Callable[[], list[T]], name: Callable[[T], str]
) -> T:
    """Return the object with this id, or the only one of the newest whose id contains this part."""
    try:
        return get(part)
    except NotFound as error:
        matching = [one for one in newest() if part.lower() in name(one).lower()]
        if not matching:
            raise error from None
    return single_match(matching, part, what, lambda one: single_line(name(one)))


def single_match(matching: list[T], part: str, what: str, row: Callable[[T], str], *, by_name: bool = False) -> T:
    """Return the only match; raise Invalid with the list of candidates if there are several."""
    if len(matching) > 1:
        rows = [f"  {row(one)}" for one in matching[:MOST_CANDIDATES]]
        more = [f"  and {len(matching) - MOST_CANDIDATES} more"] if len(matching) > MOST_CANDIDATES else []
        raise Invalid("\n".join([f"{len(matching)} {_shared(what, part, by_name=by_name)}:", *rows, *more]))
    return matching[0]


def _shared(what: str, part: str, *, by_name: bool) -> str:
    """Return what several candidates have in common, and what to do."""
    if by_name:
        return f"{what} are named {part!r:.80}; use an id"
    return f"{what} contain {part!r:.80} in their id; use a longer part"


def full_address(who: str) -> str:
    """Return the address for a name: `agent:d` for `d`."""
    return who if ":" in who else f"agent:{who}"


def optional_address(named: str | None) -> str | None:
    return None if named is None else full_address(named)


def read_text(given: str) -> str:
    return sys.stdin.read() if given == "-" else given
