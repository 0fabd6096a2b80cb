"""Roost's own docs as pages under /docs, for the links of the guide. They are part of the package."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from html import escape
from pathlib import Path, PurePosixPath
from posixpath import normpath

from fastapi import FastAPI, Request
from starlette.responses import HTMLResponse, Response

from roost import bundled_docs
from roost.api.notices import missing_page
from roost.errors import NotFound

STYLE = (Path(__file__).with_name("docs.css")).read_text(encoding="utf-8")
HOME = "start"
_RELATIVE = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|mailto:|/)([^)#\s]*)(#[\w-]+)?\)")
_NEW_TAB = re.compile(r'(href="/docs/[^"]*") rel="[^"]*" target="_blank"')
"""Links from one page to another one open in the same tab."""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Roost</title>
<style>{style}</style>
</head>
<body>
<nav aria-label="Pages"><a href="/">Roost</a>{pages}</nav>
<main>{body}</main>
</body>
</html>
"""


def add(app: FastAPI) -> None:
    """Add the routes of the docs; they are no part of the API."""

    @app.get("/docs", include_in_schema=False)
    @app.get("/docs/{page:path}", include_in_schema=False)
    def docs(request: Request, page: str = "") -> Response:
        try:
            return HTMLResponse(_shown(page.strip("/") or HOME))
        except NotFound:
            if "text/html" in request.headers.get("accept", ""):
                return missing_page()
            raise


@lru_cache(maxsize=64)
def _shown(page: str) -> str:
    """Return a page as HTML. Raise NotFound if there is none with this name."""
    pages = {doc.name: doc for doc in bundled_docs.pages()}
    if page not in pages:
        raise NotFound("no such page: /docs lists the pages")
    links = "".join(_link(doc, is_current=name == page) for name, doc in pages.items())
    links += '<a href="/docs/api">Requests of the HTTP API</a>'
    body = "".join(_section(page, section, pages) for section in pages[page].sections())
    return PAGE.format(title=escape(pages[page].title), style=STYLE, pages=links, body=body)


def _link(doc: bundled_docs.Doc, *, is_current: bool) -> str:
    current = ' aria-current="page"' if is_current else ""
    return f'<a href="/docs/{escape(doc.name)}"{current}>{escape(doc.title)}</a>'


def _section(page: str, section: bundled_docs.Section, known: Collection[str]) -> str:
    from roost.ui.rendering.markdown import render

    text = _RELATIVE.sub(lambda found: _resolved(page, found, known), section.source)
    shown = _NEW_TAB.sub(r"\1", render(text))
    return f'<section id="{escape(section.anchor)}">{shown}</section>'


def _resolved(page: str, link: re.Match[str], known: Collection[str]) -> str:
    """Return a Markdown link to another page of the docs; of one that is not shown here only its text."""
    text, target, anchor = link[1], link[2], link[3] or ""
    name = normpath(PurePosixPath(page).parent / target).removesuffix(".md") if target else page
    return f"[{text}](/docs/{name}{anchor})" if name in known else text
