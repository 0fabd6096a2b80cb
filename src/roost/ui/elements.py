"""Elements of Roost for Streamlit's pages, each written in JavaScript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from streamlit.components.v2.types import ComponentRenderer

ANSWERS = Path(__file__).with_name("rendering") / "code.css"
"""Style of answers."""


def element(name: str, module: str, files: str, *styles: Path) -> ComponentRenderer:
    """Register an element; return the function that draws it.

    Its script is FILES.js beside the module; its style and HTML are FILES.css and FILES.html, if they exist. Its own
    style follows `styles`.
    """
    script = Path(module).with_name(f"{files}.js")
    css = "".join(map(_text, (*styles, script.with_suffix(".css"))))
    html = _text(script.with_suffix(".html"))
    return st.components.v2.component(
        name, html=html or None, css=css or None, js=script.read_text(encoding="utf-8"), isolate_styles=False
    )


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""
