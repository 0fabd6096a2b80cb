"""`roost talks`: talks, their branches, transcripts and files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roost.cli.app.options import Config, Json, Limit, Store, command_group, load_settings
from roost.cli.app.typer_ext import parse_choice, parse_count
from roost.cli.commands.talks import attachments, branches, talks, transcripts
from roost.core.talks.transcripts import TranscriptFormat

app = command_group()
TalkId = Annotated[str, typer.Argument(metavar="TALK", help="Id of a talk, or a unique part of it.")]
At = Annotated[
    int | None,
    typer.Option("--at", metavar="N", parser=parse_count(1), help="Number of the message; by default the last one."),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to create; it must not exist.")
]


@app.command()
def ls(
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your talks, most recently used first."""
    talks.ls(load_settings(config, store=store), as_json=json, limit=limit)


@app.command()
def show(
    talk: TalkId,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all messages of a talk."""
    talks.show(load_settings(config, store=store), talk, as_json=json)


@app.command()
def fork(
    talk: TalkId,
    at: At = None,
    title: Annotated[str | None, typer.Option("--title", help="Title of the new talk.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make an independent talk of the messages up to one of them."""
    branches.fork(load_settings(config, store=store), talk, at, title, as_json=json)


@app.command()
def edit(
    talk: TalkId,
    number: Annotated[int, typer.Argument(metavar="N", parser=parse_count(1), help="Number of your message.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new text.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send another text in place of a message, in a branch."""
    branches.edit(load_settings(config, store=store), talk, number, text, as_json=json)


@app.command()
def regenerate(
    talk: TalkId,
    at: Annotated[
        int | None,
        typer.Option("--at", metavar="N", parser=parse_count(1), help="Number of the answer; by default the last one."),
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Answer a message again, in a branch, and print it."""
    branches.regenerate(load_settings(config, store=store), talk, at, as_json=json)


@app.command()
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS…", help="Words that a message must contain.")],
    talk: Annotated[
        str | None, typer.Option("--talk", help="Only in this talk: its id or a unique part of it.")
    ] = None,
    json: Json = False,
    limit: Limit = 20,
    store: Store = None,
    config: Config = None,
) -> None:
    """Find messages in your talks, most recently used first.

    The last word may be the start of a word. Words in double quotes must be neighbours.
    """
    talks.search(load_settings(config, store=store), " ".join(words), talk, as_json=json, limit=limit)


@app.command()
def export(
    talk: TalkId,
    form: Annotated[
        str,
        typer.Option("--format", parser=parse_choice("the format", TranscriptFormat), help="markdown or json."),
    ] = "markdown",
    output: Output = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Print a talk as Markdown, or as JSON that can be imported."""
    transcripts.export(load_settings(config, store=store), talk, form, output)


@app.command()
def save(
    talk: TalkId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of a file in the talk.")],
    output: Output = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Save a file that was sent in a talk."""
    attachments.save(load_settings(config, store=store), talk, name, output)


@app.command("import")
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON of `roost talks export`; - for standard input.")],
    profile: Annotated[str | None, typer.Option("--profile", help="Profile of the new talk.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Agent of the new talk.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Add an exported talk as a new talk, and print its id."""
    transcripts.import_file(load_settings(config, store=store), file, profile, agent, as_json=json)
