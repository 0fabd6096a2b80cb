"""`roost dead-letters`: what could not be handled; look at it, retry it, drop it."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.commands import choice
from roost.cli.desk import NEWEST, check_agent, found, note_waiting, opened, short, show, show_list
from roost.cli.find import Service
from roost.cli.options import Config, Json, Limit, OfAgent, Store, group
from roost.cli.tables import ago, at, facts
from roost.cli.text import plain
from roost.core.envelopes import DeadLetter, LetterKind

app = group()
Letter = Annotated[
    str, typer.Argument(metavar="LETTER", help="The id of a dead letter, or any part of it that no other has.")
]
OneOrAll = Annotated[
    str | None, typer.Argument(metavar="LETTER", help="The id of a dead letter, or any part of it that no other has.")
]
All = Annotated[bool, typer.Option("--all", help="All there are.")]


@app.command()
def ls(
    agent: OfAgent = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", parser=choice("the kind", LetterKind), help="talk, task, mail, event, meeting or outgoing."
        ),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List dead letters, newest first."""
    with opened(store, config) as (service, user):
        listed = service.dead_letters.list(user, agent=agent, kind=kind, limit=limit)
        check_agent(service, user, agent, listed)
    show_list(listed, ("ID", "KIND", "AGENT", "SINCE", "TRIES", "WHY"), _row, "No dead letters.", as_json=json)


def _row(one: DeadLetter) -> tuple[str, ...]:
    return short(one.letter_id), one.kind, one.agent_id or "", ago(one.created), str(one.attempts), one.reason


@app.command("show")
def show_one(letter: Letter, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a dead letter, and what was in it."""
    with opened(store, config) as (service, user):
        one = _found(service, user, letter)
    show(one, lambda: _facts(one), as_json=json)


def _found(service: Service, user: str, part: str) -> DeadLetter:
    return found(
        part, "dead letters", lambda name: service.dead_letters.get(user, name),
        lambda: service.dead_letters.list(user, limit=NEWEST), lambda one: one.letter_id,
    )  # fmt: skip


def _facts(one: DeadLetter) -> Iterator[str]:
    yield from facts(
        [
            ("letter", one.letter_id),
            ("kind", one.kind),
            ("agent", one.agent_id),
            ("why", one.reason),
            ("fault", one.fault),
            ("tries", str(one.attempts)),
            ("since", at(one.created)),
        ]
    )
    yield "\n" + plain(json_module.dumps(dict(one.envelope), indent=2, ensure_ascii=False))


@app.command()
def retry(
    letter: OneOrAll = None,
    every: All = False,
    agent: OfAgent = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Post a dead letter again, or with --all, all of them.

    As if it were sent now.
    """
    with opened(store, config) as (service, user):
        if _all(letter, every):
            done = service.dead_letters.retry_all(user, agent=agent)
            left = service.dead_letters.list(user, agent=agent, limit=1)
            if not done:
                check_agent(service, user, agent, left)
            told = f"Retried {done}." + " Some are left: `roost dead-letters ls` tells why." * bool(left)
        else:
            one, done = _found(service, user, letter or ""), 1
            service.dead_letters.retry(user, one.letter_id)
            told = f"{short(one.letter_id)} is posted again."
        if done:
            note_waiting(service, "it waits until `roost up` runs")
    show({"retried": done}, lambda: [told], as_json=json)


@app.command()
def drop(
    letter: OneOrAll = None,
    every: All = False,
    agent: OfAgent = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Drop a dead letter for good; or with --all, all of them."""
    with opened(store, config) as (service, user):
        if _all(letter, every):
            done = service.dead_letters.drop_all(user, agent=agent)
            if not done:
                check_agent(service, user, agent, [])
            told = f"Dropped {done}."
        else:
            one, done = _found(service, user, letter or ""), 1
            service.dead_letters.drop(user, one.letter_id)
            told = f"{short(one.letter_id)} is dropped."
    show({"dropped": done}, lambda: [told], as_json=json)


def _all(letter: str | None, every: bool) -> bool:
    if (letter is None) is not every:
        raise typer.BadParameter("name a dead letter, or give --all")
    return every
