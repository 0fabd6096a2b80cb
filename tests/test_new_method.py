"""A new method of a namespace: all that follows from its coroutine, and the files that its author changes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from roost.core.values.traits import Count, NewId, idempotent, reads
from roost.protocol.examples import example_of
from roost.protocol.namespaces import Method, methods
from roost.sync import HANDLERS
from tests.test_docs import DOCS
from tools import http_reference, javascript_client

ROOT = Path(__file__).parent.parent
BY_HAND = {
    "src/roost/runtime/handlers/mail.py",
    "src/roost/core/envelopes/mail.py",
    "src/roost/sync.py",
    "docs/reference/agents.md",
}
GENERATED = {
    "docs/reference/http.md",
    "src/roost/client/javascript/roost.mjs",
    "src/roost/client/javascript/roost.d.mts",
}
SUFFIXES = {".py", ".md", ".mjs", ".mts"}
OF_ITS_CALLERS = {"src/roost/cli/commands/mail.py", "src/roost/ui/mail/new_mail.py"}
FORWARD = re.compile(
    r"Mails\.forward\b|mail\.forward\b|def forward\(|forwarding\(|\bforward(:|\(params|`|\(user)|/forward`"
)
"""Code and pages that have `mail.forward`, or the rule for its text."""


class Mails:
    async def remind(self, user_id: str, mail_id: str, to: str, *, key: str | None = None) -> NewId:
        """Send a mail about a mail."""
        raise NotImplementedError

    async def purge(self, user_id: str, before: float) -> Count:
        raise NotImplementedError

    @reads
    async def senders(self, user_id: str, *, limit: int = 10) -> list[str]:
        raise NotImplementedError

    @idempotent
    async def flag(self, user_id: str, mail_id: str) -> None:
        raise NotImplementedError


@pytest.fixture
def new() -> dict[str, Method]:
    return {method.name: method for method in methods("mail", Mails)}


def test_the_author_of_mail_forward_changes_four_files() -> None:
    paths = [path for folder in ("src", "docs/reference") for path in (ROOT / folder).rglob("*.*")]
    texts = {str(path.relative_to(ROOT)): path.read_text() for path in paths if path.suffix in SUFFIXES}
    found = {name for name, text in texts.items() if FORWARD.search(text)}
    assert found - OF_ITS_CALLERS == BY_HAND | GENERATED


def test_the_worked_example_names_these_files() -> None:
    example = (ROOT / "CONTRIBUTING.md").read_text().split("`mail.forward` is an example", 1)[1]
    numbered = re.findall(r"^\d\. `([^`]+)`", example, re.MULTILINE)
    assert {name if name.startswith("docs") else f"src/roost/{name}" for name in numbered} == BY_HAND


def test_the_route_and_the_reply_follow_from_the_signature(new: dict[str, Method]) -> None:
    assert {name: f"{one.route.verb} {one.path}" for name, one in new.items()} == {
        "remind": "POST mail/{mail_id}/remind",
        "purge": "POST mail/purge",
        "senders": "GET mail/senders",
        "flag": "POST mail/{mail_id}/flag",
    }
    assert new["remind"].reply("mail_1") == {"mailId": "mail_1"}
    assert new["remind"].result({"mailId": "mail_1"}, "ann") == "mail_1"
    assert new["purge"].reply(3) == {"count": 3}


def test_a_client_repeats_a_method_that_has_a_key_or_is_declared_so(new: dict[str, Method]) -> None:
    assert {name for name, one in new.items() if one.is_repeatable} == {"remind", "senders", "flag"}
    assert {name: one.scope for name, one in new.items()} == {
        "remind": "mail:write",
        "purge": "mail:write",
        "senders": "mail:read",
        "flag": "mail:write",
    }


def test_the_reference_the_javascript_client_and_the_example_follow_too(new: dict[str, Method]) -> None:
    rows = list(http_reference.rows("mail", (new["remind"], new["purge"])))
    assert rows[:2] == [
        "| `POST /api/v1/mail/{mail_id}/remind` | `to`, `key` | `mailId` |\n",
        "| `POST /api/v1/mail/purge` | `before` | `count` |\n",
    ]
    assert "      remind: KEYED,\n" in javascript_client.row("mail", (new["remind"],))
    assert list(javascript_client.signature(new["purge"], {})) == [
        "  purge(params: { before: number }, options?: CallOptions): Promise<number>;"
    ]
    assert example_of(new["remind"]) == {"to": "agent:dispatcher"}


def test_every_reply_is_an_object() -> None:
    served = [method for name, kind in HANDLERS.items() for method in methods(name, kind)]
    bare = [one.full_name for one in served if not _is_object(one)]
    assert bare == [], "declare a ReplyField in the return type"


def _is_object(method: Method) -> bool:
    return method.replies is type(None) or (isinstance(method.replies, type) and issubclass(method.replies, BaseModel))


def test_the_http_reference_is_generated() -> None:
    page = (DOCS / "reference" / "http.md").read_text()
    assert http_reference.with_methods(page) == page, "run: make generate"
