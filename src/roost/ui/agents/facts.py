"""Facts about one thing: a table of names and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import streamlit as st

from roost.ui.table import table
from roost.ui.table.table import Cell, Column, Row

Fact: TypeAlias = tuple[str, Cell | str]
_COLUMNS = [Column("About"), Column("Value", "long")]


def facts(key: str, name: str, known: Iterable[Fact]) -> None:
    """Draw facts; those without a text are left out."""
    rows = [Row(label, (label, value)) for label, value in known if (value if isinstance(value, str) else value.text)]
    with st.container(key=f"facts_{key}"):
        table.draw(key, name, _COLUMNS, rows, empty="")
