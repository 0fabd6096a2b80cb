"""`roost agents memories`, `remember` and `forget`: search and edit the memories of an agent."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.options import Agent, Config, Json, Limit, Store, command_group
from roost.cli.app.shared import NEWEST, find_by_id, open_session
from roost.cli.render.output import print_result, short_id
from roost.cli.render.tables import relative_time, table
from roost.cli.render.text import single_line
from roost.core.brain_data.memories import Memory
from roost.errors import NotFound

app = command_group()
GENERATED = 32
"""Length of a generated key: it is shown by its short form."""


@app.command()
def memories(
    agent: Agent,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to search for; without, list the newest.")] = "",
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """Search the memories of an agent.

    The best matches come first, then the newest.

    \b
    For example:
      roost agents memories d "what does ann like"
    """
    with open_session(store, config) as (service, user):
        listed = service.agents.memories(user, agent, query, limit=limit)
    none = "No matching memories." if query.strip() else "No memories. Add one with `roost agents remember AGENT TEXT`."
    print_result(listed, lambda: _rows(listed) if listed else [none], as_json=json)


def _rows(listed: list[Memory]) -> Iterator[str]:
    return table(("KEY", "CREATED", "TEXT"), ((_named(one), relative_time(one.created), one.text) for one in listed))


def _named(memory: Memory) -> str:
    return memory.key if len(memory.key) < GENERATED else short_id(memory.key)


@app.command()
def remember(
    agent: Agent,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text to remember; - reads standard input.")],
    key: Annotated[str | None, typer.Option("--key", help="Key of the memory; replaces an existing one.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Add a memory to an agent.

    \b
    For example:
      roost agents remember d "Ann likes green" --key ann.colour
    """
    words = sys.stdin.read() if text == "-" else text
    with open_session(store, config) as (service, user):
        made = service.agents.remember(user, agent, words, key=key)
    print_result(made, lambda: [single_line(made.key)], as_json=json)


@app.command()
def forget(
    agent: Agent,
    key: Annotated[str, typer.Argument(metavar="KEY", help="Key, or a unique part of it.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Delete a memory of an agent."""
    with open_session(store, config) as (service, user):
        if not service.agents.forget(user, agent, key):
            key = _only(service.agents.memories(user, agent, limit=NEWEST), key).key
            service.agents.forget(user, agent, key)
    print_result({"key": key, "forgotten": True}, lambda: [f"{single_line(key)} is forgotten."], as_json=json)


def _only(newest: list[Memory], part: str) -> Memory:
    def get(key: str) -> Memory:
        raise NotFound(f"there is no memory with key {key!r:.80}: `roost agents memories AGENT` lists them")

    return find_by_id(part, "memories", get, lambda: newest, lambda memory: memory.key)
