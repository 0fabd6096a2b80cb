"""Elements are registered with the files beside their modules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import streamlit as st

from roost.ui import elements


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(st.components.v2, "component", lambda name, **files: found.append({"name": name, **files}))
    return found


def test_an_element_has_the_files_of_its_name(tmp_path: Path, registered: list[dict[str, Any]]) -> None:
    shared = tmp_path / "shared.css"
    for file, text in ((shared, "a {}"), (tmp_path / "list.css", "b {}"), (tmp_path / "list.html", "<p>")):
        file.write_text(text, encoding="utf-8")
    (tmp_path / "list.js").write_text("export default () => {}", encoding="utf-8")
    elements.element("roost_list", str(tmp_path / "module.py"), "list", shared)
    assert registered == [
        {
            "name": "roost_list",
            "html": "<p>",
            "css": "a {}b {}",
            "js": "export default () => {}",
            "isolate_styles": False,
        }
    ]


def test_an_element_may_have_a_script_only_but_not_none(tmp_path: Path, registered: list[dict[str, Any]]) -> None:
    (tmp_path / "bare.js").write_text("1", encoding="utf-8")
    elements.element("roost_bare", str(tmp_path / "module.py"), "bare")
    assert (registered[0]["html"], registered[0]["css"]) == (None, None)
    with pytest.raises(FileNotFoundError):
        elements.element("roost_none", str(tmp_path / "module.py"), "none")
