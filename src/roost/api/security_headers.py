"""Headers of every response that protect browsers."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

from roost.api.sign_in.paths import PLAIN

POLICY = "; ".join(
    (
        "default-src 'self'",
        # Streamlit's page has an inline script, and our pages add one through `st.html`.
        "script-src 'self' 'unsafe-inline' blob:",
        "style-src 'self' 'unsafe-inline'",
        # Images of other hosts are never fetched, even if an agent's answer contains them.
        "img-src 'self' data: blob:",
        "media-src 'self' data: blob:",
        "font-src 'self' data:",
        "connect-src 'self' {socket}",
        "worker-src 'self' blob:",
        "frame-src 'self' blob: data:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


def careful(send: Send, path: str, host: str | None) -> Send:
    """Return a `send` that adds security headers. `host`: the one of the request, None if it is not known."""
    policy = POLICY.format(socket=f"ws://{host} wss://{host}" if host else "")
    may_be_stricter = path.startswith(("/api/", *PLAIN))

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["x-content-type-options"] = "nosniff"
            headers["x-frame-options"] = "DENY"
            headers["referrer-policy"] = "same-origin"
            headers["cross-origin-opener-policy"] = "same-origin"
            headers["cross-origin-resource-policy"] = "same-origin"
            if not may_be_stricter or "content-security-policy" not in headers:  # those of files and forms
                headers["content-security-policy"] = policy
            # Streamlit allows every origin on some of its paths; we allow only our own.
            for name in ("access-control-allow-origin", "access-control-allow-credentials"):
                if name in headers:
                    del headers[name]
        await send(message)

    return sending
