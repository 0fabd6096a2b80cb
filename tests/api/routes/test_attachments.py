"""Files over HTTP: raw bytes up and down, for the browser's cookie, refused early, never run."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from roost import Limits
from tests.api.conftest import BRAINS
from tests.api.serving import Served, serving
from tests.conftest import Open

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 600_000
SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
UPLOAD = "/api/v1/attachments"


def upload(client: httpx.Client, name: str, data: bytes) -> dict[str, object]:
    reply = client.post(UPLOAD, params={"name": name}, content=data)
    assert reply.status_code == 201, reply.text
    found: dict[str, object] = reply.json()
    return found


def test_a_browser_uploads_sends_and_sees_its_files_and_nobody_elses(served: Served) -> None:
    with served.browser("ann") as ann, served.browser("bob") as bob, served.browser(None) as visitor:
        image, drawing = upload(ann, "C:\\a\\Vögel 🐦.png", PNG), upload(ann, 'x";y.svg', SVG)
        assert (image["name"], image["mediaType"], image["size"]) == ("Vögel 🐦.png", "image/png", len(PNG))
        talk = ann.post("/api/v1/talks", json={"profile": "parrot"}).json()["talkSessionId"]
        ids = [image["attachmentId"], drawing["attachmentId"]]
        sent = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": "", "attachments": ids})
        assert (sent.status_code, sent.json()["attachments"]) == (201, [image, drawing])
        seen = ann.get(f"{UPLOAD}/{ids[0]}", headers={"Accept": "text/html"})
        assert (seen.content, seen.headers["content-type"]) == (PNG, "image/png")
        assert seen.headers["content-disposition"] == "inline; filename*=UTF-8''V%C3%B6gel%20%F0%9F%90%A6.png"
        saved = ann.get(f"{UPLOAD}/{ids[1]}")
        assert (saved.content, saved.headers["content-type"]) == (SVG, "text/plain; charset=utf-8")
        assert saved.headers["content-disposition"] == "attachment; filename*=UTF-8''x%22%3By.svg"
        for reply in (seen, saved):
            assert reply.headers["content-security-policy"] == "default-src 'none'; sandbox"
            assert reply.headers["x-content-type-options"] == "nosniff"
            assert "private" in reply.headers["cache-control"] or reply.headers["cache-control"] == "no-store"
        again = ann.get(f"{UPLOAD}/{ids[1]}", headers={"If-None-Match": saved.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        tag = {"If-None-Match": saved.headers["etag"]}
        assert [client.get(f"{UPLOAD}/{ids[1]}", headers=tag).status_code for client in (bob, visitor)] == [404, 401]
        assert visitor.post(UPLOAD, params={"name": "a"}, content=b"x").status_code == 401
        foreign = ann.post(UPLOAD, params={"name": "a"}, content=b"x", headers={"Origin": "http://evil.example"})
        assert foreign.status_code == 403


def test_what_is_refused_says_why(service: Open) -> None:
    limits = Limits(attachment_bytes=1_000, attachments_per_message=1, message_bytes=100)
    with serving(service(BRAINS, limits=limits), limits=limits) as served, served.browser("ann") as ann:
        for name, data, status, told in (
            ("a", b"x" * 1_001, 413, "1,000 are allowed"),
            ("a", b"", 422, "is empty"),
            ("..", b"x", 422, "name of the file"),
            ("a\0b", b"x", 422, "name of the file"),
            (None, b"x", 422, "name: must be given"),
        ):
            reply = ann.post(UPLOAD, params={} if name is None else {"name": name}, content=data)
            assert (reply.status_code, told in reply.json()["detail"]) == (status, True), reply.text
        talk = ann.post("/api/v1/talks", json={"profile": "parrot"}).json()["talkSessionId"]
        for wrong in ("a", [1], ["a", "b"], [None], {"a": 1}):
            reply = ann.post(f"/api/v1/talks/{talk}/messages", json={"content": "hi", "attachments": wrong})
            assert reply.status_code == 422, reply.text


@pytest.mark.parametrize("head", ["Content-Length: 500000000", "Transfer-Encoding: chunked"])
def test_a_body_without_end_is_refused_as_soon_as_it_is_too_large(service: Open, head: str) -> None:
    limits = Limits(attachment_bytes=100_000)
    with serving(service(BRAINS, limits=limits), limits=limits) as served:
        cookie = f"{served.identity.cookie_name}={served.identity.cookie('ann')}"
        place = urlsplit(served.url)
        lines = [f"Host: {place.netloc}", f"Origin: {served.url}", f"Cookie: {cookie}", head, "", ""]
        with socket.create_connection(("localhost", place.port or 0), timeout=10) as wire:
            wire.sendall("\r\n".join([f"POST {UPLOAD}?name=a HTTP/1.1", *lines]).encode())
            if "chunked" in head:
                wire.sendall(b"30D40\r\n" + b"x" * 0x30D40 + b"\r\n")  # the body does not end here
            assert wire.recv(100).startswith(b"HTTP/1.1 413")
