"""Element of tables for Streamlit's pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlsplit

import streamlit as st

from roost.ui.callbacks import once, uninterrupted
from roost.ui.elements import element
from roost.ui.shell import navigation
from roost.ui.shell.navigation import Route

_OPENED = "opened_link"


@dataclass(frozen=True, slots=True)
class Cell:
    """Text with a link to a page of Roost, with a colour that shows a state, or with more text on hover."""

    text: str
    href: str = ""
    tone: str = ""
    """`good`, `busy`, `waiting`, `bad` or `quiet`."""
    title: str = ""
    is_light: bool = False
    """A link of normal weight, for what needs no attention."""


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: `number` is aligned right, `long` breaks into lines."""

    label: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    row_id: str
    cells: tuple[Cell | str, ...]


@dataclass(frozen=True, slots=True)
class RowAction:
    """Button above a table. `act` is called with the ids of the chosen rows."""

    label: str
    act: Callable[[Sequence[str]], None]


_mount = element("roost_table", __file__, "table")


def draw(
    key: str,
    name: str,
    columns: Sequence[Column],
    rows: Sequence[Row],
    *,
    empty: str,
    actions: Sequence[RowAction] = (),
) -> None:
    """Draw a table. `name` is read by screen readers, `empty` shown without rows.

    A link that is clicked opens its page. With `actions`, rows can be chosen. What is chosen is known to the browser
    alone, and arrives with the action: the two cannot differ, however fast somebody clicks.
    """
    if not rows:
        st.caption(empty)
        return
    data = {
        "name": name,
        "actions": [action.label for action in actions],
        "columns": [{"label": column.label, "kind": column.kind} for column in columns],
        "rows": [{"id": row.row_id, "cells": [_as_json(cell) for cell in row.cells]} for row in rows],
    }
    _mount(
        key=key,
        data=data,
        on_action_change=once(partial(_act, key, {action.label: action.act for action in actions})),
        on_open_change=partial(keep_opened, key),
    )
    follow_opened()


@uninterrupted
def _act(key: str, actions: Mapping[str, Callable[[Sequence[str]], None]]) -> None:
    element = st.session_state.get(key)
    match element.action if element is not None else None:  # None if the page was left meanwhile
        case {"label": str(label), "chosen": [*chosen]} if label in actions:
            actions[label]([str(row_id) for row_id in chosen])


@uninterrupted
def keep_opened(key: str) -> None:
    """Keep the link that was clicked in an element: the run that is to follow it may be ended by the next one."""
    if (element := st.session_state.get(key)) is not None:  # None if the page was left meanwhile
        st.session_state[_OPENED] = str(element.open or "")


def follow_opened() -> None:
    """Open the page of the link that was clicked, if one was."""
    if href := st.session_state.pop(_OPENED, ""):
        follow(href)


def follow(href: str) -> None:
    """Open a page of Roost by its URL; ignore any other."""
    parts = urlsplit(href)
    path = parts.path.strip("/")
    if not parts.netloc and path in tuple(Route):
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        navigation.go(Route(path), **query)


def _as_json(cell: Cell | str) -> Any:
    if isinstance(cell, str):
        return cell
    more = {"href": cell.href, "tone": cell.tone, "title": cell.title, "light": cell.is_light}
    return {"text": cell.text, **{name: value for name, value in more.items() if value}}
