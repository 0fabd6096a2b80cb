"""Planted bugs: a piece of the code is replaced by another one while a harness runs."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any


@dataclass(frozen=True)
class Bug:
    """A defect: in the source of the function `where`, `old` is replaced by `new`."""

    name: str
    what: str
    """Defect of the nodes, as a sentence."""
    where: Callable[..., Any]
    old: str
    new: str

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Replace the code for a while; every reference to the function sees it."""
        function = inspect.unwrap(self.where)
        assert isinstance(function, FunctionType)
        before = function.__code__
        function.__code__ = _compiled(self._replaced(_source(function)), function)
        self._clear_cache()
        try:
            yield
        finally:
            function.__code__ = before
            self._clear_cache()

    def _clear_cache(self) -> None:
        getattr(self.where, "cache_clear", bool)()

    def _replaced(self, text: str) -> str:
        assert self.old in text, f"{self.name}: the code has changed, and {self.old!r} is no longer in it"
        return text.replace(self.old, self.new)


def _source(function: FunctionType) -> str:
    return textwrap.dedent(inspect.getsource(function))


def _compiled(source: str, function: FunctionType) -> CodeType:
    """Return the code of a function without its decorators."""
    tree = ast.parse(source)
    [definition] = tree.body
    assert isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef)
    definition.decorator_list = []
    names: dict[str, Any] = {}
    flags = function.__code__.co_flags & _ANNOTATIONS
    exec(compile(tree, function.__code__.co_filename, "exec", flags, dont_inherit=True), function.__globals__, names)
    code = names[definition.name].__code__
    assert isinstance(code, CodeType)
    return code


_ANNOTATIONS = 0x1000000
"""Flag of `from __future__ import annotations`."""
