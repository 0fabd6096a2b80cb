"""`roost agents create` and `set`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer

from roost.cli.app.agent_options import with_settings
from roost.cli.app.options import Agent, Config, Json, Store, command_group
from roost.cli.app.shared import open_session
from roost.cli.render.agents import setting_text, state_sentence
from roost.cli.render.output import print_result
from roost.cli.render.tables import key_values
from roost.core.agents import agent as agents

app = command_group()


@app.command()
@with_settings
def create(
    agent: Agent,
    settings: dict[str, Any],
    stopped: Annotated[bool, typer.Option("--stopped", help="Create it without starting it.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Create an agent. It exists until you delete it.

    \b
    For example:
      roost agents create d --profile echo --max-concurrent-tasks 2
    """
    with open_session(store, config) as (service, user):
        made = service.agents.create(user, agent, start=not stopped, **settings)
    print_result(made, lambda: [state_sentence(made)], as_json=json)


@app.command("set")
@with_settings
def configure(
    agent: Agent, settings: dict[str, Any], json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Change the settings of an agent.

    Settings that are not given stay unchanged.

    \b
    For example:
      roost agents set d --max-concurrent-tasks 5 --subscribe "alerts.*"
    """
    if not settings:
        raise typer.BadParameter("no setting given: `roost agents set --help` lists all settings")
    with open_session(store, config) as (service, user):
        changed = service.agents.configure(user, agent, **settings)
    print_result(changed, lambda: _changed(changed, settings), as_json=json)


def _changed(agent: agents.Agent, settings: dict[str, Any]) -> Iterator[str]:
    return key_values((name, setting_text(agent.config, name) or "(none)") for name in settings)
