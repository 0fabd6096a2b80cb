"""Entry point of the command line. Each command imports what it needs when it runs, so that `roost --help` is fast."""

from __future__ import annotations

import os
import sys
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from roost.cli.app.options import BehindProxy, Config, Host, Json, Port, Store, TlsCert, TlsKey, load_settings
from roost.cli.app.server_choice import CHOICE, CaFile, Server, ServerChoice
from roost.cli.app.typer_ext import CommandGroup, parse_count
from roost.cli.root import accounts, chat, cluster, data
from roost.errors import Invalid, RoostError

if TYPE_CHECKING:
    from roost.settings import Settings

INTERRUPTED = 130
GROUPS = {
    "talks": ("talks.commands", "List, show, search, branch, export and import your talks."),
    "agents": ("agents", "Create, inspect, start and stop agents."),
    "tasks": ("tasks", "Send tasks to agents and read their results."),
    "schedules": ("schedules", "Send tasks to agents at set times."),
    "mail": ("mail", "Send and read mail between users and agents."),
    "events": ("events", "Publish events to agents and list past events."),
    "models": ("models", "List, download and remove local models."),
    "approvals": ("approvals", "Approve or decline the tool calls that runs wait for."),
    "runs": ("runs", "Inspect finished runs step by step."),
    "meetings": ("meetings", "Call meetings, take part in them and read them."),
    "tokens": ("accounts.tokens", "Create, list and revoke API tokens for programs."),
    "users": ("accounts.users", "Add, disable, delete and export users; read the audit list."),
    "webhooks": ("webhooks.webhooks", "Post facts to URLs of other programs."),
    "hooks": ("webhooks.hooks", "Create URLs to which other programs post events and tasks."),
    "demo": ("demo", "Watch agents play, report and plan; no API key needed."),
    "dead-letters": ("dead_letters", "Inspect, retry or drop work that could not be handled."),
}
"""Command groups by name: the module that is imported on first use, and the line in `roost --help`."""

ORDER = (
    "up",
    "serve",
    "node",
    "nodes",
    "drain",
    "ui",
    "link",
    "mcp",
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
    "login",
    "logout",
    "whoami",
    "tokens",
    "users",
    "webhooks",
    "hooks",
    "export",
    "import",
    "backup",
    "restore",
    "migrate",
    "migrate-store",
    "logs",
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


Reload = Annotated[bool, typer.Option("--reload", help="Reload changed brains before the next answer.")]
app = CommandGroup(
    name="roost",
    cls=RootGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_error(text: str) -> None:
    from roost.cli.render.text import sanitize

    print(f"roost: {sanitize(text)}", file=sys.stderr)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def options(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version.")
    ] = False,
    server: Server = None,
    ca_file: CaFile = None,
) -> None:
    """Roost: a home for long-lived agents."""
    before = CHOICE.set(ServerChoice(server, ca_file))
    context.call_on_close(lambda: CHOICE.reset(before))


for root_commands in (chat, accounts, data, cluster):
    app.add_typer(root_commands.app)


@app.command(local=True)
def up(
    port: Port = None,
    host: Host = None,
    store: Store = None,
    config: Config = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Do not open a browser.")] = False,
    reload: Reload = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Start the server: pages, API and agents.

    Listens on http://localhost:8501 by default. Ctrl-C or SIGTERM stops it.
    """
    settings = _server_settings(config, port, host, store, tls_cert, tls_key, behind_proxy)
    _start(settings, browser=not no_browser, reload=reload, pages=True)


def _missing_extra(error: ModuleNotFoundError) -> RoostError:
    from roost.errors import Unavailable

    return Unavailable(f"the server needs the package {error.name!r}: pip install 'roost[ui]'")


@app.command(local=True)
def serve(
    port: Port = None,
    host: Host = None,
    store: Store = None,
    config: Config = None,
    reload: Reload = False,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Start the server without pages: API and agents.

    Listens on http://localhost:8501 by default. Ctrl-C or SIGTERM stops it.
    """
    settings = _server_settings(config, port, host, store, tls_cert, tls_key, behind_proxy)
    _start(settings, browser=False, reload=reload, pages=False)


@app.command(local=True)
def node(
    port: Port = None,
    host: Host = None,
    store: Store = None,
    config: Config = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    behind_proxy: BehindProxy = False,
) -> None:
    """Start a node of a cluster: API and agents.

    Needs a PostgreSQL store and the table [cluster] in the settings. `roost up` starts a node with pages.
    """
    settings = _server_settings(config, port, host, store, tls_cert, tls_key, behind_proxy)
    if settings.cluster is None:
        raise Invalid("no cluster is configured: add a table [cluster] with `nats` to roost.toml, or use `roost serve`")
    _start(settings, browser=False, reload=False, pages=False)


def _server_settings(
    config: Path | None,
    port: int | None,
    host: str | None,
    store: str | None,
    tls_cert: Path | None,
    tls_key: Path | None,
    behind_proxy: bool,
) -> Settings:
    return load_settings(
        config,
        port=port,
        host=host,
        store=store,
        tls_cert=tls_cert and tls_cert.absolute(),
        tls_key=tls_key and tls_key.absolute(),
        behind_proxy=behind_proxy or None,
    )


def _start(settings: Settings, *, browser: bool, reload: bool, pages: bool) -> None:
    try:
        from roost.cli.commands.server import up as command
    except ModuleNotFoundError as error:
        raise _missing_extra(error) from error
    command.run(settings, browser=browser, reload=reload, pages=pages)


@app.command(local=True)
def ui(port: Port = None, store: Store = None, config: Config = None) -> None:
    """Serve only the pages, with Streamlit's own server."""
    from roost.cli.commands.server import ui as command

    command.run(load_settings(config, port=port, store=store), config)


@app.command(local=True)
def link(json: Json = False, store: Store = None, config: Config = None) -> None:
    """Print a new one-time sign-in link for a browser.

    Needs a running `roost up`. `roost ui` prints its own link when it starts.
    """
    from roost.cli.commands.talks import talks as command

    command.link(load_settings(config, store=store), as_json=json)


@app.command()
def mcp(store: Store = None, config: Config = None) -> None:
    """Serve agents as tools to an MCP client.

    The client starts this command, and talks to it on standard input and output. It uses the running server; without
    one it opens the store while it is called.
    """
    from roost.cli.commands import mcp as command

    command.run(load_settings(config, store=store))


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


@app.command(local=True)
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to create; it must not exist.")],
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Copy the store to a file, even while Roost runs.

    The copy is a consistent snapshot, checked and fsynced. Only you can read the file.
    """
    from roost.cli.commands import backup as command

    command.back_up(load_settings(config, store=store), file, as_json=json)


@app.command(local=True)
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File made by `roost backup`.")],
    yes: Annotated[bool, typer.Option("--yes", help="Replace the store that exists.")] = False,
    json: Json = False,
    store: Store = None,
    config: Config = None,
) -> None:
    """Replace the store by a backup.

    Stop Roost first. The old store is kept next to it.
    """
    from roost.cli.commands import backup as command

    command.restore(load_settings(config, store=store), file, replace=yes, as_json=json)


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
