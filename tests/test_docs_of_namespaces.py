"""The reference page of namespaces matches the code: each method, each field of its result, and nothing else."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import get_args, get_type_hints
from unittest.mock import Mock

import pytest

import roost
from roost.core.monitoring.facts import Name
from roost.sync import SyncNamespaces, SyncTalks
from tests.test_docs import DOCS, PAGES, named
from tools import javascript_client

PAGE = DOCS / "reference" / "agents.md"
NONE = inspect.Parameter.empty


def namespaces() -> dict[str, type]:
    """The class of each namespace of the service, by the namespace's name."""
    found = vars(SyncNamespaces(Mock())).items()
    return {name: type(namespace) for name, namespace in found if not name.startswith("_")}


def calls(namespace: type) -> dict[str, str]:
    """The public methods of a namespace by their names, each as one calls it."""
    return {name: f"{name}{called(method)}" for name, method in vars(namespace).items() if not name.startswith("_")}


def called(method: Callable[..., object]) -> str:
    given = list(inspect.signature(method).parameters.values())[1:]
    bare = inspect.Signature([one.replace(annotation=NONE) for one in given])
    return str(bare).replace("user_id", "user").replace("'", '"')


def records() -> dict[str, type]:
    """Return all types that methods return, and the types in them; the settings of agents are in the guide."""
    found: dict[str, type] = {}
    methods = [getattr(namespace, name) for namespace in namespaces().values() for name in calls(namespace)]
    waiting = [get_type_hints(method)["return"] for method in [*methods, roost.AgentService.health]]
    while waiting:
        one = waiting.pop()
        if is_dataclass(one) and isinstance(one, type) and one.__name__ not in found:
            found[one.__name__] = one
            waiting += get_type_hints(one).values()
        if inspect.isclass(one) and issubclass(one, dict):  # with attributes
            waiting += [*vars(one).get("__orig_bases__", ()), *get_type_hints(one).values()]
        waiting += get_args(one)
    del found["AgentConfig"]
    return found


def has(kind: type) -> set[str]:
    """The public fields and properties of a record."""
    properties = inspect.getmembers(kind, lambda value: isinstance(value, property))
    return {field.name for field in fields(kind)} | {name for name, _ in properties}


def rows(section: str) -> list[str]:
    return re.findall(r"^\| `(.+?)` \| ", section, re.MULTILINE)


def sections(mark: str) -> dict[str, str]:
    """Return the text under each heading of this level, without what stands under any other."""
    found = re.findall(rf"^{mark} (.+)\n((?:(?!#+ ).*\n)*)", PAGE.read_text(), re.MULTILINE)
    return dict(found)


def test_every_face_and_each_of_its_methods_is_documented_as_it_is_called() -> None:
    documented = {
        name.removeprefix("service."): rows(text) for name, text in sections("##").items() if "service." in name
    }
    assert documented == {name: list(calls(namespace).values()) for name, namespace in namespaces().items()}
    told = (DOCS / "reference" / "service.md").read_text()
    assert [name for name in documented if f"| [`service.{name}`](agents.md#service{name}) |" not in told] == []


def test_every_method_for_talks_is_documented_with_its_arguments() -> None:
    told = (DOCS / "reference" / "service.md").read_text().split("## Methods\n", 1)[1].split("\n## ", 1)[0]
    documented = {row.partition("(")[0]: set(re.findall(r"\w+", row)) for row in rows(told)}
    for name in calls(SyncTalks):
        arguments = set(list(inspect.signature(getattr(SyncTalks, name)).parameters)[3:])
        assert arguments - {"agent", "talk_session_id"} <= documented[name], name


def test_every_field_of_what_the_faces_give_is_documented() -> None:
    documented: dict[str, set[str]] = {}
    for heading, text in sections("###").items():
        for name in rows(text):
            kind, _, field = name.rpartition(".")
            documented.setdefault(kind or heading, set()).add(field)
    assert documented == {name: has(kind) for name, kind in records().items()}


def test_every_choice_in_what_the_faces_give_is_documented() -> None:
    page = PAGE.read_text()
    hints = [hint for kind in records().values() for hint in get_type_hints(kind).values()]
    choices = {one for hint in hints for kind in (hint, *get_args(hint)) for one in members(kind)}
    assert sorted(one for one in choices if f"`{one}`" not in page) == []


def members(kind: object) -> set[str]:
    """Return the values of an enum; facts have a page of their own."""
    if isinstance(kind, type) and issubclass(kind, StrEnum) and kind is not Name:
        return {str(one) for one in kind}
    return set()


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_page_names_a_method_that_there_is_not(page: Path) -> None:
    kinds = namespaces()
    told = re.findall(rf"service\.({'|'.join(kinds)})\.(\w+)", page.read_text())
    if page.parent.name == "reference" or page.name in ("agents.md", "monitor.md"):
        told += re.findall(rf"`({'|'.join(kinds)})\.(\w+)", page.read_text())
    assert [f"{namespace}.{name}" for namespace, name in told if name not in calls(kinds[namespace])] == []


def test_the_javascript_client_has_the_methods_and_their_types() -> None:
    advice = "run: make generate"
    code = javascript_client.CODE.read_text()
    assert javascript_client.with_methods(code) == code, advice
    assert javascript_client.types() == javascript_client.TYPES.read_text(), advice
