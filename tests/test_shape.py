"""The shape of the code: imports point one way, and what must stay in one place stays there."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import roost

SRC = Path(__file__).parent.parent / "src" / "roost"

# Each part may import itself and what stands in its list; nothing else of Roost.
LAYERS: dict[str, set[str]] = {
    "errors": set(),
    "core": {"errors"},
    "ports": {"errors", "core"},
    "runtime": {"errors", "core", "ports"},
    "stores": {"errors", "core", "ports"},
    "hosts": {"errors", "core", "ports"},
    "brains": {"errors", "core", "ports"},
    "tools": {"errors", "core", "ports"},
    "log": {"core"},
    "telemetry": {"ports"},
    "settings": {"errors", "core", "ports"},
    "keys": {"errors"},
    "wiring": {
        "keys",
        "errors",
        "core",
        "ports",
        "runtime",
        "stores",
        "hosts",
        "brains",
        "tools",
        "settings",
        "telemetry",
    },
    "protocol": {"errors", "core", "ports"},
    "faces": {"core", "runtime", "hosts"},
    "service": {"keys", "errors", "core", "ports", "runtime", "brains", "hosts", "wiring", "settings", "faces"},
    "testing": {"errors", "core", "ports", "runtime", "brains", "hosts", "stores", "wiring", "service"},
    "client": {"errors", "core", "ports", "protocol", "faces"},
    "api": {"errors", "core", "ports", "hosts", "protocol", "settings", "wiring", "faces", "service", "ui"},
    "ui": {"errors", "core", "ports", "settings", "service", "api"},
    "cli": {
        "keys",
        "errors",
        "core",
        "ports",
        "protocol",
        "brains",
        "hosts",
        "stores",
        "settings",
        "wiring",
        "service",
        "log",
        "api",
        "client",
        "ui",
    },
    "__init__": {"errors", "core", "ports", "service"},
    "__main__": {"cli"},
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
    assert not loaded & {"pydantic", "fastapi", "streamlit", "uvicorn", "typer", "rich", "psycopg", "httpx"}


def test_importing_roost_loads_nothing_that_runs() -> None:
    assert not loaded_by("import roost") & {"asyncio", "sqlite3", "roost.service", "roost.wiring", "roost.runtime"}


def test_all_public_names_are_there() -> None:
    assert set(roost.__all__) <= set(dir(roost))
    assert all(getattr(roost, name) is not None for name in roost.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'opne'"):
        getattr(roost, "opne")  # noqa: B009  # mypy would know
