"""The page for whoever comes with a link that signs in, when the link is good no more."""

from __future__ import annotations

from starlette.responses import HTMLResponse, Response

_SPENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Roost: this link is spent</title>
<style>
:root { color-scheme: light dark; --ink: #1E2422; --paper: #FFFFFF; --soft: #F3F4F1; --link: #17665B; }
@media (prefers-color-scheme: dark) { :root { --ink: #E6E9E7; --paper: #16191A; --soft: #212627; --link: #7CCBBD; } }
body { margin: 0; min-height: 100vh; display: grid; place-items: center; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 28rem; padding: 2rem; }
h1 { margin: 0 0 .75rem; font-size: 1.35rem; }
code { padding: .1rem .35rem; border-radius: .3rem; background: var(--soft); }
a { color: var(--link); }
</style>
</head>
<body>
<main>
<h1>This link is spent</h1>
<p>A link signs in one browser, once, within ten minutes. This one was used already, or is too old.</p>
<p>Type <code>roost link</code> in a terminal for a new one, or <a href="/">open Roost</a> as you are.</p>
</main>
</body>
</html>
"""


def spent_link() -> Response:
    return HTMLResponse(_SPENT, 403)
