"""Plain pages for browsers that asked for something that is not there."""

from __future__ import annotations

from starlette.responses import HTMLResponse, Response

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Roost: {title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #1E2422; --paper: #FFFFFF; --soft: #F3F4F1; --link: #17665B; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #E6E9E7; --paper: #16191A; --soft: #212627; --link: #7CCBBD; }}
}}
body {{ margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }}
main {{ max-width: 28rem; padding: 2rem; }}
h1 {{ margin: 0 0 .75rem; font-size: 1.35rem; }}
code {{ padding: .1rem .35rem; border-radius: .3rem; background: var(--soft); }}
a {{ color: var(--link); }}
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
<p>Run <code>roost link</code> in a terminal to get a new one, or <a href="/">open Roost</a> without signing in.</p>"""
_MISSING = """<p>Your talks are on <a href="/">the first page</a>, the docs under <a href="/docs">/docs</a>, and
the API of programs is described under <a href="/docs/api">/docs/api</a>.</p>"""


def expired_link() -> Response:
    return HTMLResponse(_PAGE.format(title="This sign-in link has expired", text=_EXPIRED), 403)


def missing_page() -> Response:
    return HTMLResponse(_PAGE.format(title="There is no such page", text=_MISSING), 404)
