"""`roost dead-letters`: work that could not be handled; inspect, retry or drop it."""

from __future__ import annotations

import json as json_module
from collections.abc import Iterator
from typing import Annotated

import typer

from roost.cli.app.connect import Service
from roost.cli.app.options import Config, Json, Limit, OfAgent, Store, command_group
from roost.cli.app.shared import NEWEST, check_agent, find_by_id, note_not_running, open_session
from roost.cli.app.typer_ext import parse_choice
from roost.cli.render.output import print_result, print_table, short_id
from roost.cli.render.tables import key_values, local_time, relative_time
from roost.cli.render.text import sanitize
from roost.core.envelopes.dead_letters import DeadLetter, LetterKind

app = command_group()
Letter = Annotated[str, typer.Argument(metavar="LETTER", help="Id of a dead letter, or a unique part of it.")]
OneOrAll = Annotated[str | None, typer.Argument(metavar="LETTER", help="Id of a dead letter, or a unique part of it.")]
All = Annotated[bool, typer.Option("--all", help="All dead letters.")]


@app.command()
def ls(
    agent: OfAgent = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            parser=parse_choice("the kind", LetterKind),
            help="Only talk, task, mail, event, meeting, answer or outgoing.",
        ),
    ] = None,
    json: Json = False,
    limit: Limit = 50,
    store: Store = None,
    config: Config = None,
) -> None:
    """List dead letters, newest first."""
    with open_session(store, config) as (service, user):
        listed = service.dead_letters.list(user, agent=agent, kind=kind, limit=limit)
        check_agent(service, user, agent, listed)
    print_table(listed, ("ID", "KIND", "AGENT", "SINCE", "ATTEMPTS", "REASON"), _row, "No dead letters.", as_json=json)


def _row(one: DeadLetter) -> tuple[str, ...]:
    return (
        short_id(one.letter_id),
        one.kind,
        one.agent_id or "",
        relative_time(one.created),
        str(one.attempts),
        one.reason,
    )


@app.command("show")
def show_one(letter: Letter, json: Json = False, store: Store = None, config: Config = None) -> None:
    """Show a dead letter and its content."""
    with open_session(store, config) as (service, user):
        one = _find(service, user, letter)
    print_result(one, lambda: _facts(one), as_json=json)


def _find(service: Service, user: str, part: str) -> DeadLetter:
    return find_by_id(
        part,
        "dead letters",
        lambda name: service.dead_letters.get(user, name),
        lambda: service.dead_letters.list(user, limit=NEWEST),
        lambda one: one.letter_id,
    )


def _facts(one: DeadLetter) -> Iterator[str]:
    yield from key_values(
        [
            ("letter", one.letter_id),
            ("kind", one.kind),
            ("agent", one.agent_id),
            ("reason", one.reason),
            ("fault", one.fault),
            ("attempts", str(one.attempts)),
            ("since", local_time(one.created)),
        ]
    )
    yield "\n" + sanitize(json_module.dumps(dict(one.envelope), indent=2, ensure_ascii=False))


@app.command()
def retry(
    letter: OneOrAll = None,
    every: All = False,
    agent: OfAgent = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Retry a dead letter, or with --all, all of them.

    The work is queued again as if it were sent now.
    """
    with open_session(store, config) as (service, user):
        if _all(letter, every):
            done = service.dead_letters.retry_all(user, agent=agent)
            left = service.dead_letters.list(user, agent=agent, limit=1)
            if not done:
                check_agent(service, user, agent, left)
            text = f"Retried {done}." + " Some could not be retried: `roost dead-letters ls` shows the reasons." * bool(
                left
            )
        else:
            one, done = _find(service, user, letter or ""), 1
            service.dead_letters.retry(user, one.letter_id)
            text = f"{short_id(one.letter_id)} was queued again."
        if done:
            note_not_running(service, "it is retried when `roost up` runs")
    print_result({"retried": done}, lambda: [text], as_json=json)


@app.command()
def drop(
    letter: OneOrAll = None,
    every: All = False,
    agent: OfAgent = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Delete a dead letter, or with --all, all of them."""
    with open_session(store, config) as (service, user):
        if _all(letter, every):
            done = service.dead_letters.drop_all(user, agent=agent)
            if not done:
                check_agent(service, user, agent, [])
            text = f"Dropped {done}."
        else:
            one, done = _find(service, user, letter or ""), 1
            service.dead_letters.drop(user, one.letter_id)
            text = f"{short_id(one.letter_id)} was dropped."
    print_result({"dropped": done}, lambda: [text], as_json=json)


def _all(letter: str | None, every: bool) -> bool:
    if (letter is None) is not every:
        raise typer.BadParameter("give the id of a dead letter, or --all")
    return every
