"""Every operation of the store's ports is asked for by name in the contracts: nothing is kept that nobody tries."""

from __future__ import annotations

import ast
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import get_type_hints

import pytest

from roost.ports import statements

HERE = Path(__file__).parent
OPERATIONS = sorted(
    (field, name)
    for field, kind in get_type_hints(statements.Statements).items()
    for name in vars(kind)
    if not name.startswith("_")
)  # fmt: skip


@cache
def asked_for() -> set[str]:
    """What is read of anything in these tests: `store.write(inbox.post, …)` reads `post`."""
    trees = [ast.parse(path.read_text()) for path in HERE.glob("test_*.py") if path.name != Path(__file__).name]
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def test_there_are_operations() -> None:
    assert len(OPERATIONS) > 100
    assert {field for field, _ in OPERATIONS} == {one.name for one in fields(statements.Statements)}


@pytest.mark.parametrize(("field", "name"), OPERATIONS)
def test_each_is_asked_for(field: str, name: str) -> None:
    assert name in asked_for(), f"no contract calls {field}.{name}"
