"""Every store operation that the runtime uses is called by name in the contracts."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

import roost

HERE = Path(__file__).parent
RUNTIME = Path(str(roost.__file__)).parent / "runtime"
SQL = "roost.stores.sql"


def operations(path: Path) -> set[tuple[str, str]]:
    """Return the operations a module uses, as (module of stores/sql, function)."""
    tree = ast.parse(path.read_text())
    modules = {
        alias.asname or alias.name: f"{node.module}.{alias.name}".removeprefix(f"{SQL}.")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(SQL)
        for alias in node.names
    }
    return {
        (modules[node.value.id], node.attr)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
    }


OPERATIONS = sorted(set[tuple[str, str]]().union(*map(operations, RUNTIME.rglob("*.py"))))


@cache
def asked_for() -> set[str]:
    """Return every attribute that is read in these tests: `store.write(effects.post, …)` reads `post`."""
    trees = [ast.parse(path.read_text()) for path in HERE.rglob("test_*.py") if path.name != Path(__file__).name]
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_there_are_operations() -> None:
    assert len(OPERATIONS) > 100


@pytest.mark.parametrize(("module", "name"), OPERATIONS)
def test_each_is_asked_for(module: str, name: str) -> None:
    assert name in asked_for(), f"no contract calls {module}.{name}"
