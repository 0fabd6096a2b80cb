"""`roost export`, `roost import`, `roost migrate`, `roost migrate-store` and `roost logs`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from roost.cli.app.options import Config, Json, Store, command_group, load_settings
from roost.cli.app.typer_ext import parse_choice, parse_count

app = command_group()


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@app.command()
def export(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File to create; - writes to standard output.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Write your agents, schedules, mail and talks to one file.

    Agents have their settings, state and memories; talks have their files. `roost import` adds them to another Roost.
    """
    from roost.cli.commands.archives import exporting as command

    command.export(load_settings(config, store=store), file, as_json=json)


@app.command("import")
def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="File made by `roost export`; - reads standard input.")],
    profile: Annotated[
        str | None, typer.Option("--profile", help="Profile to use where one is not configured here.")
    ] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Add what an export has; what exists is left as it is.

    The file is checked before anything is added. Importing it again adds only what is missing.
    """
    from roost.cli.commands.archives import importing as command

    raise typer.Exit(command.run(load_settings(config, store=store), file, profile, as_json=json))


@app.command(local=True)
def migrate(json: Json = False, store: Store = None, config: Config = None) -> None:
    """Bring the schema of the store up to date.

    Roost does it at every start. As a job before an upgrade, this shows errors before the first node is replaced.
    """
    from roost.cli.commands.server import migrate as command

    command.run(load_settings(config, store=store), as_json=json)


@app.command("migrate-store", local=True)
def migrate_store(
    source: Annotated[str, typer.Argument(metavar="FROM", help="SQLite store: a file or sqlite:///file.db.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Empty database: postgresql://user@host/name.")],
    json: Json = False,
    config: Config = None,
) -> None:
    """Copy a SQLite store to an empty PostgreSQL database.

    Stop Roost first. All rows of all users are copied in one transaction and verified; FROM is not changed.
    """
    from roost.cli.commands import migrate_store as command

    load_settings(config)  # refuses --server
    command.run(source, target, as_json=json)


@app.command(local=True)
def logs(
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", parser=parse_count(0, 100_000), help="Entries to show.")
    ] = 50,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show new entries until Ctrl-C.")] = False,
    level: Annotated[
        str,
        typer.Option(
            "--level",
            parser=parse_choice("the level", LogLevel),
            help="Only of this level or a higher one: debug, info, warning or error.",
        ),
    ] = "debug",
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="Only about this run: its id or a part of it.")] = "",
    talk: Annotated[
        str, typer.Option("--talk", metavar="TALK", help="Only about this talk: its id or a part of it.")
    ] = "",
    json: Json = False,
    config: Config = None,
) -> None:
    """Show the log of the server on this machine, newest last."""
    from roost.cli.commands import logs as command

    chosen = command.LogFilter(level, run, talk)
    command.run(load_settings(config), chosen, lines=lines, follow=follow, as_json=json)
