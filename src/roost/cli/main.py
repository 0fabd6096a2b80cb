"""The command line: parse, call, print. What a command needs is imported when it runs: `roost --help` is quick."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roost.cli.commands import Commands, count
from roost.cli.options import Config, Host, Json, Limit, Port, Store, settings_of
from roost.errors import RoostError

INTERRUPTED = 130
LATER = {
    "agents": ("agents", "Make agents, look at them, start and stop them."),
    "tasks": ("tasks", "Give agents something to do, and see what came of it."),
    "schedules": ("schedules", "Have agents do things by the clock."),
    "mail": ("mail", "Write to agents and people, and read what they write."),
    "events": ("events", "Tell agents what has happened, and see what was told."),
    "models": ("models", "Look at the models on this machine, fetch one, remove one."),
    "approvals": ("approvals", "Look at what runs wait for, and say what may be done."),
    "runs": ("runs", "Look at what was done, step by step."),
    "meetings": ("meetings", "Call meetings, speak in them, and see what was said."),
    "demo": ("demo", "See agents play, report and plan, with no key."),
    "dead-letters": ("letters", "Look at what could not be handled, retry it or drop it."),
}
"""Groups of commands that are loaded when one of them is wanted: their modules, and what `roost --help` says."""

ORDER = (
    "up", "ui", "link", "chat", "talks", "agents", "tasks", "schedules", "mail", "events", "meetings", "demo",
    "approvals", "runs", "replay", "dead-letters", "models", "doctor", "bench", "version",
)  # fmt: skip
"""What belongs together stands together in `roost --help`."""


class Later(TyperGroup):
    """A group whose commands are in a module of their own."""

    def __init__(self, name: str, module: str, about: str) -> None:
        super().__init__(name=name, help=about, no_args_is_help=True, rich_markup_mode=None)
        self._module = module

    @cached_property
    def _loaded(self) -> Any:
        return typer.main.get_command(import_module(f"roost.cli.{self._module}").app)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self._loaded.list_commands(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self._loaded.get_command(ctx, cmd_name)


class Careful(TyperGroup):
    """Ends with one sentence and an exit code, never with a stack trace (but with ROOST_DEBUG=1)."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (module, about) in LATER.items():
            self.add_command(Later(name, module, about))

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)

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


app = Commands(
    name="roost", cls=Careful, no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
talks_app = Commands(no_args_is_help=True, rich_markup_mode=None, help="Look at your talks.")
app.add_typer(talks_app, name="talks")


def complain(text: str) -> None:
    from roost.cli.text import plain

    print(f"roost: {plain(text)}", file=sys.stderr)


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
def link(json: Json = False, store: Store = None, config: Config = None) -> None:
    """Print a new link that signs a browser in, once.

    It is made by the `roost up` that runs; `roost ui` prints its own as it starts.
    """
    from roost.cli import talks as command

    command.link(settings_of(config, store=store), as_json=json)


@app.command()
def chat(
    profile: Annotated[str | None, typer.Option("--profile", help="Whom to talk with.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="An agent to talk with, in place of a profile.")] = None,
    talk: Annotated[str | None, typer.Option("--talk", help="A talk to go on with: its id, or any part of it.")] = None,
    thoughts: Annotated[
        bool, typer.Option("--thoughts/--no-thoughts", help="Show in a terminal what is thought and done on the way.")
    ] = True,
    store: Store = None,
    config: Config = None,
) -> None:
    """Talk in the terminal. What you type interrupts the answer; Ctrl-C stops it, a second one leaves."""
    if agent is not None and (profile is not None or talk is not None):
        raise typer.BadParameter("give --agent, or --profile and --talk: an agent has its own profile")
    from roost.cli import chat as command

    raise typer.Exit(command.run(settings_of(config, store=store), profile, talk, agent, thoughts=thoughts))


@talks_app.command("ls")
def talks_ls(
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your talks, last used first."""
    from roost.cli import talks as command

    command.ls(settings_of(config, store=store), as_json=json, limit=limit)


@talks_app.command("show")
def talks_show(
    talk: Annotated[str, typer.Argument(metavar="TALK", help="The id of a talk, or any part of it that no other has.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all messages of a talk."""
    from roost.cli import talks as command

    command.show(settings_of(config, store=store), talk, as_json=json)


@app.command()
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id of a run, or any part of it that no other has.")],
    until: Annotated[
        int | None, typer.Option("--until", metavar="N", parser=count(0), help="End after so many steps.")
    ] = None,
    live: Annotated[bool, typer.Option("--live", help="Do what is not on record, or comes after --until.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Run a run again from its journal, and tell what differs.

    Nothing is sent and nothing is written.
    """
    from roost.cli import runs as command

    raise typer.Exit(command.replay(store, config, run, until, live=live, as_json=json))


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
