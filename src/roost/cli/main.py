"""The command line: parse, call, print. What a command needs is imported when it runs: `roost --help` is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from roost.errors import RoostError

if TYPE_CHECKING:
    from roost.settings import Settings

INTERRUPTED = 130


class Careful(TyperGroup):
    """Ends with one sentence and an exit code, never with a stack trace (but with ROOST_DEBUG=1)."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except RoostError as error:
            if os.environ.get("ROOST_DEBUG") == "1":
                raise
            complain(str(error))
            raise typer.Exit(1) from None


app = typer.Typer(
    name="roost", cls=Careful, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
talks_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at your talks.")
app.add_typer(talks_app, name="talks")

Config = Annotated[Path | None, typer.Option("--config", help="Settings file (else ROOST_CONFIG, else ./roost.toml).")]
Store = Annotated[str | None, typer.Option("--store", help="Where things are kept, such as sqlite:///file.db.")]
Port = Annotated[int | None, typer.Option("--port", min=0, max=65535, help="Port to listen on (8501).")]
Host = Annotated[str | None, typer.Option("--host", help="Address to listen on (127.0.0.1).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def complain(text: str) -> None:
    from roost.cli.text import plain

    print(f"roost: {plain(text)}", file=sys.stderr)


def settings_of(config: Path | None, **options: Any) -> Settings:
    from roost.settings import load

    return load(config, **options)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
) -> None:
    """Roost: a home for long-lived agents."""


@app.command()
def up(
    port: Port = None,
    host: Host = None,
    store: Store = None,
    config: Config = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    reload: Annotated[bool, typer.Option("--reload", help="Take up changes of brains at their next answer.")] = False,
) -> None:
    """Start everything: pages, API and agents.

    They are at http://localhost:8501 unless told otherwise, until Ctrl-C or SIGTERM.
    """
    settings = settings_of(config, port=port, host=host, store=store)
    try:
        from roost.cli import up as command
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    command.run(settings, browser=not no_browser, reload=reload)


def _missing_extra(error: ModuleNotFoundError) -> RoostError:
    from roost.errors import Unavailable

    return Unavailable(f"the server needs {error.name!r}: pip install 'roost[ui]'")


@app.command()
def ui(port: Port = None, store: Store = None, config: Config = None) -> None:
    """Serve the pages alone, with Streamlit's own server."""
    from roost.cli import ui as command

    command.run(settings_of(config, port=port, store=store), config)


@app.command()
def link(store: Store = None, config: Config = None) -> None:
    """Print a new link that signs a browser in, once.

    It is made by the `roost up` that runs.
    """
    from roost.cli import talks as command

    command.link(settings_of(config, store=store))


@app.command()
def chat(
    profile: Annotated[str | None, typer.Option("--profile", help="Whom to talk with.")] = None,
    talk: Annotated[str | None, typer.Option("--talk", help="A talk to go on with: its id, or any part of it.")] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Talk in the terminal. What you type interrupts the answer; Ctrl-C stops it, a second one leaves."""
    from roost.cli import chat as command

    raise typer.Exit(command.run(settings_of(config, store=store), profile, talk))


@talks_app.command("ls")
def talks_ls(
    json: Json = False,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at the most.")] = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your talks, last used first."""
    from roost.cli import talks as command

    command.ls(settings_of(config, store=store), as_json=json, limit=limit)


@talks_app.command("show")
def talks_show(
    talk: Annotated[str, typer.Argument(help="The id of a talk, or any part of it that no other has.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all messages of a talk."""
    from roost.cli import talks as command

    command.show(settings_of(config, store=store), talk, as_json=json)


@app.command()
def doctor(
    json: Json = False, port: Port = None, host: Host = None, store: Store = None, config: Config = None
) -> None:
    """Look for what is wrong, and say how to mend it."""
    from roost.cli import doctor as command

    raise typer.Exit(command.run(config, {"port": port, "host": host, "store": store}, as_json=json))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Measure what is fast (in a checkout of Roost)."""
    from roost.cli import bench as command

    raise typer.Exit(command.run(context.args))


@app.command()
def version(json: Json = False) -> None:
    """Print the version."""
    import roost

    print(f'{{"version": "{roost.__version__}"}}' if json else f"roost {roost.__version__}")


def main() -> None:
    app(prog_name="roost")


if __name__ == "__main__":
    main()
