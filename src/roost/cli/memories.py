"""`roost agents memories`, `remember` and `forget`: what an agent remembers, looked at and edited."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.desk import NEWEST, found, opened, short, show
from roost.cli.options import Agent, Config, Json, Limit, Store
from roost.cli.tables import ago, table
from roost.cli.text import line
from roost.core.memories import Memory
from roost.errors import NotFound

GENERATED = 32
"""Characters of a key that nobody has chosen: it is shown by its end."""


def memories(
    agent: Agent,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to look for; none: the newest.")] = "",
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show what an agent remembers.

    What has the most of the query comes first, then what is newest.

    \b
    For example:
      roost agents memories d "what does ann like"
    """
    with opened(store, config) as (service, user):
        listed = service.agents.memories(user, agent, query, limit=limit)
    none = "Nothing like it." if query.strip() else "Nothing: have it remember with `roost agents remember AGENT TEXT`."
    show(listed, lambda: _rows(listed) if listed else [none], as_json=json)


def _rows(listed: list[Memory]) -> Iterator[str]:
    return table(("KEY", "WHEN", "TEXT"), ((_named(one), ago(one.created), one.text) for one in listed))


def _named(memory: Memory) -> str:
    return memory.key if len(memory.key) < GENERATED else short(memory.key)


def remember(
    agent: Agent,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to remember; - reads it.")],
    key: Annotated[str | None, typer.Option("--key", help="Under this key, in place of what is there.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Have an agent remember something.

    \b
    For example:
      roost agents remember d "Ann likes green" --key ann.colour
    """
    words = sys.stdin.read() if text == "-" else text
    with opened(store, config) as (service, user):
        made = service.agents.remember(user, agent, words, key=key)
    show(made, lambda: [line(made.key)], as_json=json)


def forget(
    agent: Agent,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key, or any part of it that no other has.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Have an agent forget something."""
    with opened(store, config) as (service, user):
        if not service.agents.forget(user, agent, key):
            key = _only(service.agents.memories(user, agent, limit=NEWEST), key).key
            service.agents.forget(user, agent, key)
    show({"key": key, "forgotten": True}, lambda: [f"{line(key)} is forgotten."], as_json=json)


def _only(newest: list[Memory], part: str) -> Memory:
    def get(key: str) -> Memory:
        raise NotFound(f"there is no memory {key!r:.80}: it was forgotten, or it never existed")

    return found(part, "memories", get, lambda: newest, lambda memory: memory.key)
