"""Paths of the sign-in pages, and where a browser goes afterwards."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

SIGN_IN, SIGN_OUT, INVITE, ACCOUNT = "/sign-in", "/sign-out", "/invite", "/account"
OIDC_START, OIDC_CALLBACK = "/oidc/start", "/oidc/callback"
FORMS = frozenset({SIGN_IN, INVITE})
"""Forms of people who are not signed in yet."""
OPEN = frozenset({SIGN_IN, SIGN_OUT, INVITE, OIDC_START, OIDC_CALLBACK, "/enter", "/healthz", "/readyz", "/metrics"})
"""Paths for people who are not signed in; the last one has a check of its own."""
PLAIN = (SIGN_IN, SIGN_OUT, INVITE, ACCOUNT)
"""Starts of the paths of pages without script."""
HOME = "/"
LONGEST = 2_000


def local_path(asked: str | None) -> str:
    """Return a path of this server to go to, or `/` if anything else is asked for.

    Browsers read `//host`, `/\\host` and paths with tabs or line breaks before them as URLs of other servers.
    """
    path = asked or ""
    if len(path) > LONGEST or not path.startswith("/") or path[1:2] in ("/", "\\"):
        return HOME
    if not path.isascii() or any(sign <= " " or sign in "\\\x7f" for sign in path):
        return HOME
    return HOME if urlsplit(path).path in OPEN else path


def sign_in_path(path: str, query: str) -> str:
    """Return the path of the sign-in page that leads back to a page."""
    back = local_path(f"{quote(path, safe='/')}?{query}" if query else quote(path, safe="/"))
    return SIGN_IN if back == HOME else f"{SIGN_IN}?next={quote(back, safe='')}"
