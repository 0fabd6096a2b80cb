"""The shape of the code: imports point one way, and what must stay in one place stays there."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import roost
from roost.ports import Meeting, PlainMeeting, PlainTurn, Turn

SRC = Path(__file__).parent.parent / "src" / "roost"

# Each part may import itself and what stands in its list; nothing else of Roost.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "ports": {"errors", "core"},
    "runtime": {"errors", "core", "ports", "stores"},  # of stores only the SQL: see below
    "stores": {"errors", "core", "ports"},
    "hosts": {"errors", "core", "ports"},
    "transports": {"errors", "core", "ports"},
    "bundled_docs": set(),
    "brains": {"errors", "core", "ports", "bundled_docs"},
    "tools": {"errors", "core", "ports"},
    "redaction": {"core"},
    "log": {"core", "redaction", "log_floods"},
    "log_floods": set(),
    "telemetry": {"ports"},
    "oidc_settings": set(),
    "settings_errors": {"core"},
    "cluster_settings": set(),
    "settings": {"errors", "core", "ports", "cluster_settings", "oidc_settings", "settings_errors"},
    "outbound": {"core", "ports"},
    "keys": {"errors"},
    "connections": {"keys", "errors", "core", "ports", "brains"},
    "cluster": {"errors", "core", "ports", "runtime", "stores", "hosts", "transports"},
    "wiring": {
        "cluster",
        "keys",
        "connections",
        "errors",
        "core",
        "ports",
        "runtime",
        "stores",
        "hosts",
        "brains",
        "tools",
        "transports",
        "settings",
        "telemetry",
        "redaction",
        "outbound",
    },
    "protocol": {"errors", "core", "ports"},
    "sync": {"core", "runtime", "hosts"},
    "service": {
        "keys",
        "connections",
        "errors",
        "core",
        "ports",
        "runtime",
        "brains",
        "hosts",
        "wiring",
        "settings",
        "sync",
    },
    "testing": {"errors", "core", "ports", "runtime", "brains", "hosts", "stores", "transports", "wiring", "service"},
    "client": {"errors", "core", "ports", "protocol", "sync"},
    "mcp_server": {"errors", "core", "ports", "client", "service"},
    "demos": {"errors", "core", "ports", "log", "settings", "wiring", "service", "client"},
    "ui": {"errors", "core", "ports", "service", "demos", "connections"},
    "api": {
        "oidc_settings",
        "mcp_server",
        "errors",
        "core",
        "ports",
        "hosts",
        "protocol",
        "settings",
        "wiring",
        "sync",
        "service",
        "ui",
        "bundled_docs",
        "connections",
    },
    "cli": {
        "mcp_server",
        "keys",
        "demos",
        "errors",
        "core",
        "ports",
        "protocol",
        "brains",
        "hosts",
        "runtime",
        "stores",
        "settings",
        "wiring",
        "service",
        "log",
        "api",
        "client",
        "ui",
    },
    "__init__": {"errors", "core", "ports", "client", "service"},
    "__main__": {"cli"},
}
# The order inside a folder: its parts may import themselves and those named before them; those named together do not
# import each other. Imports for type checkers count.
ORDERS: dict[str, tuple[str, ...]] = {
    "api": (
        "auth credentials error_responses notices readiness tls",
        "sign_in",
        "limits openapi security_headers",
        "endpoints security",
        "shared_reads long_texts pages",
        "subscriptions",
        "routes",
        "account_pages openai rpc",
        "app server",
    ),
    "cli": ("render", "app", "commands", "root", "main"),
    "mcp_server": ("arguments callers results", "talking", "tools", "server"),
    "core": (
        "values",
        "accounts brain_data cluster failures meetings agents",
        "limits",
        "envelopes",
        "schedules talks",
        "journal monitoring runs",
        "webhooks",
    ),
    "core/meetings": ("log", "effects games options", "view", "participants"),
    "ports": (
        "attachments awaited brain_context host lease tools transport webhooks",
        "profiles servers store",
        "meeting",
        "turns",
        "brains plain",
    ),
    "stores/sql": (
        "tables",
        "brain_data budgets events facts figures meetings stored_size webhooks",
        "sleep",
        "sending",
        "journal mail tasks",
        "inbox",
        "agents held nodes schedules",
        "talks",
        "accounts",
        "dead_letters retention run_history settlement tokens hooks",
    ),
}
MOST_FILES = 16
# The packages of the runtime, each with those it may import, for types too. Modules in no package come by their name.
RUNTIME: dict[str, set[str]] = {
    "ports": set(),
    "monitoring": set(),
    "toolbox": set(),
    "limits": {"monitoring"},
    "context": {"limits", "monitoring", "toolbox"},
    "execution": {"limits", "context"},
    "outgoing": {"ports", "context", "execution"},
    "journal": {"toolbox", "context", "execution", "outgoing"},
    "turns": {"ports", "context", "execution", "outgoing", "journal"},
    "replays": {"toolbox", "context", "execution", "outgoing", "journal", "turns"},
    "cluster": {"ports", "monitoring"},
    "talks": {"ports", "context", "execution", "turns"},
    "meetings": {"ports", "context"},
    "agents": {"ports", "context", "execution", "turns", "talks"},
    "dispatch": {"ports", "context", "outgoing", "turns", "talks", "agents", "meetings"},
    "webhooks": {"monitoring", "context"},
    "handlers": {
        "ports",
        "context",
        "cluster",
        "monitoring",
        "journal",
        "turns",
        "replays",
        "talks",
        "dispatch",
        "webhooks",
    },
    "retention": {"context", "talks"},
    "figures": {"context", "dispatch"},
    "search_index": {"context"},
    "agent_watch": {"context", "agents", "dispatch"},
    "missed_changes": {"context", "agents", "dispatch", "talks"},
    "supervisor": {
        "context",
        "cluster",
        "figures",
        "handlers",
        "retention",
        "search_index",
        "agent_watch",
        "missed_changes",
        "talks",
        "agents",
        "dispatch",
    },
    "health": {"context", "dispatch", "supervisor"},
    "node_work": {"dispatch", "handlers", "supervisor"},
    "roost": {
        "ports",
        "health",
        "node_work",
        "toolbox",
        "cluster",
        "context",
        "figures",
        "retention",
        "search_index",
        "supervisor",
        "talks",
        "dispatch",
        "handlers",
        "webhooks",
    },
}
# What makes time, threads and chance; the runtime gets them from its host, so that it can be simulated.
HOSTLY = {"threading", "time", "uuid", "random", "concurrent", "multiprocessing"}
HOSTLESS = {"errors", "core", "ports", "runtime", "brains", "tools", "stores", "protocol", "wiring"}
MODULES = sorted(SRC.rglob("*.py"))


def part_of(path: Path) -> str:
    return path.relative_to(SRC).parts[0].removesuffix(".py")


def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_imports_point_down(path: Path) -> None:
    part = part_of(path)
    ours = {name.split(".")[1] for name in imports(path) if name.startswith("roost.")}
    assert ours <= LAYERS[part] | {part}


def modules_of(part: str) -> dict[str, Path]:
    """Return the modules of a part by their dotted names."""
    paths = (SRC / part).rglob("*.py")
    return {".".join(("roost", *path.relative_to(SRC).with_suffix("").parts)): path for path in paths}


@pytest.mark.parametrize("part", ORDERS)
def test_imports_inside_a_part_follow_its_order(part: str) -> None:
    levels = {name: level for level, names in enumerate(ORDERS[part]) for name in names.split()}
    prefix = f"roost.{part.replace('/', '.')}."
    assert levels.keys() == {name.removeprefix(prefix).split(".")[0] for name in modules_of(part)} - {"__init__"}
    for name, path in modules_of(part).items():
        own = name.removeprefix(prefix).split(".")[0]
        theirs = {one.removeprefix(prefix).split(".")[0] for one in imports(path) if one.startswith(prefix)}
        assert own == "__init__" or all(levels[one] < levels[own] for one in theirs - {own}), name


def _within(known: dict[str, Path], names: set[str]) -> set[str]:
    """Return the modules that are imported; a package only where none of its modules is what is meant."""
    modules = names & known.keys()
    packages = {name for name in names if not any(one.startswith(f"{name}.") for one in modules)}
    return modules | {f"{name}.__init__" for name in packages} & known.keys()


@pytest.mark.parametrize("part", ORDERS)
def test_no_modules_of_a_part_import_each_other_in_a_circle(part: str) -> None:
    known = modules_of(part)
    graph = {name: _within(known, imports(path)) - {name} for name, path in known.items()}
    while leaves := [name for name, others in graph.items() if not others & graph.keys()]:
        for name in leaves:
            del graph[name]
    assert not graph


@pytest.mark.parametrize("part", ORDERS)
def test_no_folder_of_a_part_is_crowded(part: str) -> None:
    for folder in {path.parent for path in modules_of(part).values()}:
        assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= MOST_FILES, folder


@pytest.mark.parametrize(
    "path", sorted((SRC / "runtime").rglob("*.py")), ids=lambda p: str(p.relative_to(SRC / "runtime"))
)
def test_packages_of_the_runtime_import_only_those_before_them(path: Path) -> None:
    package = path.relative_to(SRC / "runtime").parts[0].removesuffix(".py")
    used = {name.split(".")[2] for name in imports(path) if name.startswith("roost.runtime.")}
    assert used <= RUNTIME.get(package, set()) | {package}


def test_the_order_of_the_runtime_has_no_cycle() -> None:
    before: set[str] = set()
    for package, used in RUNTIME.items():
        assert used <= before
        before.add(package)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_time_threads_and_chance_come_from_the_host(path: Path) -> None:
    if part_of(path) not in HOSTLESS:
        return
    assert not {name.split(".")[0] for name in imports(path)} & HOSTLY
    assert "to_thread" not in path.read_text()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_nothing_stored_or_received_is_run(path: Path) -> None:
    text = path.read_text()
    assert not imports(path) & {"pickle", "marshal", "shelve"}
    assert not re.search(r"(?<![.\w])(eval|exec)\(|shell=True", text)


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SRC)))
def test_every_module_says_what_it_is_for(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree) or not tree.body


def test_the_runtime_knows_the_sql_and_no_database() -> None:
    for path in (SRC / "runtime").rglob("*.py"):
        names = {name for name in imports(path) if name.startswith("roost.stores")}
        assert all(name.startswith("roost.stores.sql") for name in names), path


def test_adapters_do_not_import_each_other() -> None:
    for folder, adapters in {"stores": ("sqlite", "postgres"), "hosts": ("threads", "simulated")}.items():
        for name in adapters:
            others = {f"roost.{folder}.{other}" for other in adapters if other != name}
            assert not imports(SRC / folder / f"{name}.py") & others


def loaded_by(program: str) -> set[str]:
    asked = f"import sys; {program}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout.split())


def test_the_service_is_loaded_without_a_server_and_a_page() -> None:
    loaded = loaded_by("import roost; roost.open")
    assert "roost.runtime.roost" in loaded
    assert not loaded & {"pydantic", "fastapi", "streamlit", "uvicorn", "typer", "rich", "psycopg", "httpx", "httpx2"}


def test_importing_roost_loads_nothing_that_runs() -> None:
    assert not loaded_by("import roost") & {"asyncio", "sqlite3", "roost.service", "roost.wiring", "roost.runtime"}


def test_all_public_names_are_there() -> None:
    assert set(roost.__all__) <= set(dir(roost))
    assert all(getattr(roost, name) is not None for name in roost.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        getattr(roost, "opne")  # noqa: B009  # mypy would know


@pytest.mark.parametrize(("facade", "of"), [(PlainTurn, Turn), (PlainMeeting, Meeting)])
def test_blocking_brains_have_all_that_async_brains_have(facade: type, of: type) -> None:
    """A coroutine method has a blocking form there, and all else that is public is declared for type checkers."""
    public = {name: getattr(of, name, None) for name in [*vars(of), *of.__annotations__] if not name.startswith("_")}
    ours = (
        {"note", "last_words", "end_of_turn", "position", "at_position", "messages", "history"}
        if of is Meeting
        else set()
    )
    assert public.keys() - ours <= {*vars(facade), *facade.__annotations__}
    for name, found in public.items():
        if found is not None and inspect.iscoroutinefunction(inspect.unwrap(found)):
            assert not inspect.iscoroutinefunction(vars(facade)[name]), name
            assert inspect.signature(found) == inspect.signature(vars(facade)[name]), name
            assert hasattr(found, "__wrapped__"), f"{name} must be @tracked: else a call without await goes unnoticed"
