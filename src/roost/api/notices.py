"""Plain pages without script: notices and forms, in the colors of the talk page."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import HTMLResponse, Response

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Roost: {title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1E2422; --paper: #FFFFFF; --soft: #F3F4F1; --link: #17665B;
  --fill: #17665B; --line: #8A938F; --quiet: #5A635F; --alarm: #B3261E; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #E6E9E7; --paper: #16191A; --soft: #212627; --link: #7CCBBD; --fill: #17665B; --line: #6E7875;
    --quiet: #A3ACA8; --alarm: #FF9D94; }}
}}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 28rem; padding: 2rem; }}
h1 {{ margin: 0 0 .75rem; font-size: 1.35rem; }}
code {{ padding: .1rem .35rem; border-radius: .3rem; background: var(--soft); }}
a {{ color: var(--link); }}
main {{ box-sizing: border-box; width: 100%; }}
h2 {{ margin: 2.25rem 0 .5rem; font-size: 1.1rem; }}
form {{ margin: 0; }}
label {{ display: block; margin: 1rem 0 .3rem; font-weight: 600; }}
input, select {{ box-sizing: border-box; width: 100%; padding: .6rem .7rem; border: 1px solid var(--line);
  border-radius: .5rem; background: var(--paper); color: var(--ink); font: inherit; }}
:focus-visible {{ outline: 2px solid var(--link); outline-offset: 1px; }}
button, .button {{ display: block; box-sizing: border-box; width: 100%; margin: 1.25rem 0 0; padding: .65rem 1rem;
  border: 1px solid var(--link); border-radius: .5rem; background: var(--fill); color: #FFFFFF; font: inherit;
  font-weight: 600; text-align: center; text-decoration: none; cursor: pointer; }}
button.second, .button.second {{ background: transparent; color: var(--link); }}
.error {{ margin: .4rem 0 0; color: var(--alarm); }}
.note {{ margin: 1rem 0; padding: .7rem .9rem; border-radius: .5rem; background: var(--soft);
  overflow-wrap: anywhere; }}
.note code {{ padding: 0; }}
.small {{ color: var(--quiet); font-size: .9rem; }}
.row {{ display: flex; gap: .75rem; align-items: center; justify-content: space-between; padding: .6rem 0;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }}
.row button {{ width: auto; margin: 0; padding: .35rem .8rem; }}
summary {{ margin-top: 1.25rem; cursor: pointer; color: var(--link); }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
{text}
</main>
</body>
</html>
"""
_EXPIRED = """<p>A link signs in one browser, once, within ten minutes. This one was used already, or is too old.</p>
<p>Run <code>roost link</code> in a terminal to get a new one, or <a href="/">open Roost</a>.</p>"""
_MISSING = """<p>Your talks are on <a href="/">the first page</a>, the docs under <a href="/docs">/docs</a>, and
the API of programs is described under <a href="/docs/api">/docs/api</a>.</p>"""


_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'",
}


def page(title: str, text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a page; `text` is HTML."""
    return HTMLResponse(_PAGE.format(title=title, text=text), status, {**_HEADERS, **(headers or {})})


def expired_link() -> Response:
    return page("This sign-in link has expired", _EXPIRED, 403)


def missing_page() -> Response:
    return page("There is no such page", _MISSING, 404)
