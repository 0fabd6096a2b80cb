"""Choices of a page that are in its URL: which part of it is shown, how a list is filtered, ordered and paged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal
from zlib import crc32

import streamlit as st

from roost.ui.callbacks import uninterrupted
from roost.ui.shell import navigation

BEFORE = "before"
"""Query of the page of a list, which belongs to one choice only."""
Width = int | Literal["stretch"]


def segments(name: str, label: str, options: Mapping[str, str]) -> str:
    """Draw a choice of few; return the chosen value. The first one is chosen if the URL names none."""
    key = f"choose_{name}"
    st.session_state[key] = chosen(name, options)  # each time: a value that was set once may be lost in the browser
    st.segmented_control(
        label,
        [*options],
        format_func=options.__getitem__,
        required=True,
        key=key,
        label_visibility="collapsed",
        on_change=_choose,
        args=(name, next(iter(options))),
    )
    return chosen(name, options)


def chosen(name: str, options: Mapping[str, str]) -> str:
    """Return the value that the URL names, or the first one."""
    value = navigation.asked(name) or ""
    return value if value in options else next(iter(options))


@uninterrupted
def show(**query: str | None) -> None:
    """Change parts of the query of the URL, from a callback; None removes one."""
    navigation.show(**st.query_params.to_dict() | {name: value or "" for name, value in query.items()})


@uninterrupted
def _choose(name: str, usual: str) -> None:
    value = str(st.session_state[f"choose_{name}"] or "")
    show(**{name: None if value == usual else value, BEFORE: None})


# --- filters and pages of a list -------------------------------------------------------------------------


@uninterrupted
def _take_choice(key: str, name: str, first: str, clears: Sequence[str]) -> None:
    value = str(st.session_state[key] or "").strip()
    show(**{name: "" if value == first else value, **dict.fromkeys(clears)})


def choice(
    label: str,
    name: str,
    options: Sequence[str],
    labels: Mapping[str, str] | None = None,
    *,
    clears: Sequence[str] = ("after",),
    width: Width = "stretch",
) -> str:
    """Draw a choice that is kept in the URL under `name`; return it. The first option is the default.

    `clears`: the parts of the URL that a new choice removes, such as the page of the list.
    """
    key, wanted = f"choice_{name}", navigation.asked(name) or options[0]
    st.session_state[key] = wanted if wanted in options else options[0]  # a value that is set once may be lost
    shown = labels or {}
    st.selectbox(
        label,
        options,
        key=key,
        format_func=lambda option: shown.get(option, option),
        on_change=_take_choice,
        args=(key, name, options[0], clears),
        width=width,
    )
    return str(st.session_state[key])


def search(
    label: str,
    name: str,
    placeholder: str,
    *,
    icon: str | None = ":material/search:",
    clears: Sequence[str] = ("after",),
    width: Width = "stretch",
) -> str:
    """Draw a field that is kept in the URL under `name`; return its text.

    Its key follows the URL, so that what is typed is kept until then.
    """
    text = navigation.asked(name) or ""
    key = f"search_{name}_{crc32(text.encode(errors='replace'))}"
    st.text_input(
        label,
        text,
        key=key,
        placeholder=placeholder,
        icon=icon,
        on_change=_take_choice,
        args=(key, name, "", clears),
        width=width,
    )
    return text.strip()


@uninterrupted
def _take_several(key: str, name: str, clears: Sequence[str]) -> None:
    show(**{name: ",".join(st.session_state[key]), **dict.fromkeys(clears)})


def several(
    label: str, name: str, options: Sequence[str], placeholder: str, *, clears: Sequence[str] = ("after",)
) -> list[str]:
    """Draw a choice of several options that is kept in the URL under `name`, separated by commas; return it."""
    key, wanted = f"several_{name}", (navigation.asked(name) or "").split(",")
    found = st.session_state[key] = [one for one in options if one in wanted]
    st.multiselect(label, options, key=key, placeholder=placeholder, on_change=_take_several, args=(key, name, clears))
    return found


def pages(cursor: str, last: str | None) -> None:
    """Draw buttons to the page after `last`, if there is one, and back to the first page."""
    if not last and not navigation.asked(cursor):
        return
    with st.container(horizontal=True, key=f"pages_{cursor}"):
        if navigation.asked(cursor):
            st.button("First page", key=f"first_{cursor}", on_click=show, kwargs={cursor: None})
        if last:
            st.button("Next page", key=f"next_{cursor}", on_click=show, kwargs={cursor: last})
