"""Hooks of mkdocs: pages of the site that are not in `docs`, and links to files that the site does not have."""

from __future__ import annotations

import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ADDED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Pages from the top folder, and their names on the site."""
LOGO = ("src/roost/ui/logo.svg", "images/favicon.svg")
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, name in ADDED.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    files.append(File.generated(config, LOGO[1], content=(ROOT / LOGO[0]).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Follow links as in the repository; a link to a file that the site does not have becomes its text."""
    here = page.file.src_uri
    sources = {name: source for source, name in ADDED.items()}
    parts = _CODE.split(markdown)
    source = sources.get(here, f"docs/{here}")
    return "".join(part if number % 2 else _relinked(part, source, here, files) for number, part in enumerate(parts))


def _relinked(text: str, source: str, here: str, files: Files) -> str:
    def link(found: re.Match[str]) -> str:
        mark, label, target, anchor = found[1], found[2], found[3], found[4] or ""
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = normpath(join(dirname(source), target))
        name = ADDED.get(path, path.removeprefix("docs/"))
        if files.get_file_from_path(name) is None and not path.startswith("docs/"):
            return label
        return f"{mark}[{label}]({relpath(name, dirname(here) or '.')}{anchor})"

    return _LINK.sub(link, text)
