"""Entry point of the command line. Each command imports what it needs when it runs, so that `roost --help` is fast."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from roost.cli.app.options import Config, Host, Json, Limit, Port, Store, load_settings
from roost.cli.app.typer_ext import CommandGroup, parse_choice, parse_count
from roost.errors import RoostError

INTERRUPTED = 130
GROUPS = {
    "agents": ("agents", "Create, inspect, start and stop agents."),
    "tasks": ("tasks", "Send tasks to agents and read their results."),
    "schedules": ("schedules", "Send tasks to agents at set times."),
    "mail": ("mail", "Send and read mail between users and agents."),
    "events": ("events", "Publish events to agents and list past events."),
    "models": ("models", "List, download and remove local models."),
    "approvals": ("approvals", "Approve or refuse the tool calls that runs wait for."),
    "runs": ("runs", "Inspect finished runs step by step."),
    "meetings": ("meetings", "Call meetings, take part in them and read them."),
    "demo": ("demo", "Watch agents play, report and plan; no API key needed."),
    "dead-letters": ("dead_letters", "Inspect, retry or drop work that failed for good."),
}
"""Command groups by name: the module that is imported on first use, and the line in `roost --help`."""

ORDER = (
    "up",
    "ui",
    "link",
    "chat",
    "talks",
    "agents",
    "tasks",
    "schedules",
    "mail",
    "events",
    "meetings",
    "demo",
    "approvals",
    "runs",
    "replay",
    "dead-letters",
    "models",
    "backup",
    "restore",
    "doctor",
    "bench",
    "version",
)
"""Order of the commands in `roost --help`: related ones together."""


class LazyGroup(TyperGroup):
    """Command group that imports its module on first use."""

    def __init__(self, name: str, module: str, about: str) -> None:
        super().__init__(name=name, help=about, no_args_is_help=True, rich_markup_mode=None)
        self._module = module

    @cached_property
    def _loaded(self) -> Any:
        return typer.main.get_command(import_module(f"roost.cli.commands.{self._module}").app)

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self._loaded.list_commands(ctx))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return self._loaded.get_command(ctx, cmd_name)


class RootGroup(TyperGroup):
    """Root command. Print errors as one sentence and set the exit code; show tracebacks only with ROOST_DEBUG=1."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for name, (module, about) in GROUPS.items():
            self.add_command(LazyGroup(name, module, about))

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
            print_error(str(error))
            raise typer.Exit(1) from None


app = CommandGroup(
    name="roost",
    cls=RootGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
talks_app = CommandGroup(
    no_args_is_help=True, rich_markup_mode=None, help="List, show, search, branch, export and import your talks."
)
app.add_typer(talks_app, name="talks")


def print_error(text: str) -> None:
    from roost.cli.render.text import sanitize

    print(f"roost: {sanitize(text)}", file=sys.stderr)


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
    reload: Annotated[bool, typer.Option("--reload", help="Reload changed brains before the next answer.")] = False,
) -> None:
    """Start the server: pages, API and agents.

    Listens on http://localhost:8501 by default. Ctrl-C or SIGTERM stops it.
    """
    settings = load_settings(config, port=port, host=host, store=store)
    try:
        from roost.cli.commands.server import up as command
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    command.run(settings, browser=not no_browser, reload=reload)


def _missing_extra(error: ModuleNotFoundError) -> RoostError:
    from roost.errors import Unavailable

    return Unavailable(f"the server needs the package {error.name!r}: pip install 'roost[ui]'")


@app.command()
def ui(port: Port = None, store: Store = None, config: Config = None) -> None:
    """Serve only the pages, with Streamlit's own server."""
    from roost.cli.commands.server import ui as command

    command.run(load_settings(config, port=port, store=store), config)


@app.command()
def link(json: Json = False, store: Store = None, config: Config = None) -> None:
    """Print a new one-time sign-in link for a browser.

    Needs a running `roost up`. `roost ui` prints its own link when it starts.
    """
    from roost.cli.commands.talks import talks as command

    command.link(load_settings(config, store=store), as_json=json)


@app.command()
def chat(
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
    """Chat in the terminal. Typing interrupts the answer; Ctrl-C stops it, a second Ctrl-C leaves."""
    if agent is not None and (profile is not None or talk is not None):
        raise typer.BadParameter("--agent cannot be combined with --profile or --talk: an agent has its own profile")
    from roost.cli.commands import chat as command

    settings = load_settings(config, store=store)
    raise typer.Exit(command.run(settings, profile, talk, agent, thoughts=thoughts, attach=attach or ()))


@talks_app.command("ls")
def talks_ls(
    json: Json = False,
    limit: Limit = 200,
    store: Store = None,
    config: Config = None,
) -> None:
    """List your talks, most recently used first."""
    from roost.cli.commands.talks import talks as command

    command.ls(load_settings(config, store=store), as_json=json, limit=limit)


@talks_app.command("show")
def talks_show(
    talk: Annotated[str, typer.Argument(metavar="TALK", help="Id of a talk, or a unique part of it.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Show all messages of a talk."""
    from roost.cli.commands.talks import talks as command

    command.show(load_settings(config, store=store), talk, as_json=json)


TalkId = Annotated[str, typer.Argument(metavar="TALK", help="Id of a talk, or a unique part of it.")]
At = Annotated[
    int | None,
    typer.Option("--at", metavar="N", parser=parse_count(1), help="Number of the message; by default the last one."),
]


@talks_app.command("fork")
def talks_fork(
    talk: TalkId,
    at: At = None,
    title: Annotated[str | None, typer.Option("--title", help="Title of the new talk.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Make an independent talk of the messages up to one of them."""
    from roost.cli.commands.talks import branches as command

    command.fork(load_settings(config, store=store), talk, at, title, as_json=json)


@talks_app.command("edit")
def talks_edit(
    talk: TalkId,
    number: Annotated[int, typer.Argument(metavar="N", parser=parse_count(1), help="Number of your message.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new text.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Send another text in place of a message, in a branch."""
    from roost.cli.commands.talks import branches as command

    command.edit(load_settings(config, store=store), talk, number, text, as_json=json)


@talks_app.command("regenerate")
def talks_regenerate(
    talk: TalkId, at: At = None, json: Json = False, store: Store = None, config: Config = None
) -> None:
    """Answer a message again, in a branch, and print it."""
    from roost.cli.commands.talks import branches as command

    command.regenerate(load_settings(config, store=store), talk, at, as_json=json)


@talks_app.command("search")
def talks_search(
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
    from roost.cli.commands.talks import talks as command

    command.search(load_settings(config, store=store), " ".join(words), talk, as_json=json, limit=limit)


def _parse_format(text: str) -> str:
    from roost.core.talks.transcripts import TranscriptFormat

    return parse_choice("the format", TranscriptFormat)(text)


@talks_app.command("export")
def talks_export(
    talk: Annotated[str, typer.Argument(metavar="TALK", help="Id of a talk, or a unique part of it.")],
    form: Annotated[
        str,
        typer.Option("--format", parser=_parse_format, help="markdown or json."),
    ] = "markdown",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to create; it must not exist.")
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Print a talk as Markdown, or as JSON that can be imported."""
    from roost.cli.commands.talks import transcripts as command

    command.export(load_settings(config, store=store), talk, form, output)


@talks_app.command("save")
def talks_save(
    talk: TalkId,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name or id of a file in the talk.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to create; it must not exist.")
    ] = None,
    store: Store = None,
    config: Config = None,
) -> None:
    """Save a file that was sent in a talk."""
    from roost.cli.commands.talks import attachments as command

    command.save(load_settings(config, store=store), talk, name, output)


@talks_app.command("import")
def talks_import(
    file: Annotated[str, typer.Argument(metavar="FILE", help="JSON of `roost talks export`; - for standard input.")],
    profile: Annotated[str | None, typer.Option("--profile", help="Profile of the new talk.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Agent of the new talk.")] = None,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Add an exported talk as a new talk, and print its id."""
    from roost.cli.commands.talks import transcripts as command

    command.import_file(load_settings(config, store=store), file, profile, agent, as_json=json)


@app.command()
def replay(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or a unique part of it.")],
    until: Annotated[
        int | None, typer.Option("--until", metavar="N", parser=parse_count(0), help="Stop after N steps.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Execute steps that are not recorded or come after --until.")
    ] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Replay a run from its journal and show differences.

    Nothing is sent and nothing is written. The exit code is 1 if the replay differs.
    """
    from roost.cli.commands import runs as command

    raise typer.Exit(command.replay(store, config, run, until, live=live, as_json=json))


@app.command()
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create; it must not exist.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Copy the store to a file, also while Roost runs.

    The copy is a consistent snapshot, checked and fsynced. Only you can read the file.
    """
    from roost.cli.commands import backup as command

    command.back_up(load_settings(config, store=store), file, as_json=json)


@app.command()
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File made by `roost backup`.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Replace the store by a backup.

    Stop Roost first. The old store is kept next to it.
    """
    from roost.cli.commands import backup as command

    command.restore(load_settings(config, store=store), file, as_json=json)


@app.command()
def doctor(
    json: Json = False, port: Port = None, host: Host = None, store: Store = None, config: Config = None
) -> None:
    """Diagnose problems and suggest fixes."""
    from roost.cli.commands.server import doctor as command

    raise typer.Exit(command.run(config, {"port": port, "host": host, "store": store}, as_json=json))


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def bench(context: typer.Context) -> None:
    """Run the benchmarks (in a checkout of Roost)."""
    from roost.cli.commands import bench as command

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
