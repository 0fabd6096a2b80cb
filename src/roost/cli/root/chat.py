"""`roost chat`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from roost.cli.app.options import Config, Store, command_group, load_settings

app = command_group()


@app.command()
def chat(
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="Send only this message, print the answer and exit.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="Profile to talk to (default: the default profile).")
    ] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Agent to talk to instead of a profile.")] = None,
    talk: Annotated[str | None, typer.Option("--talk", help="Talk to continue: its id or a unique part of it.")] = None,
    thoughts: Annotated[
        bool, typer.Option("--thoughts/--no-thoughts", help="In a terminal, show thinking and tool calls.")
    ] = True,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", metavar="FILE", help="File to send with the first message; may be repeated."),
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Chat in the terminal, or send one message.

    In a terminal a new message interrupts the answer; Ctrl-C stops it, a second Ctrl-C leaves, /help lists commands.
    Everything in a pipe is one message, after MESSAGE if both are given. The exit code is 1 if the answer failed.
    """
    if agent is not None and (profile is not None or talk is not None):
        raise typer.BadParameter("--agent cannot be combined with --profile or --talk: an agent has its own profile")
    from roost.cli.commands.chat import chat as command

    settings = load_settings(config, store=store)
    raise typer.Exit(
        command.run(settings, profile, talk, agent, message=message, thoughts=thoughts, attach=attach or ())
    )
