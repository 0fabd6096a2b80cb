"""`roost import --server`: everything of a file arrives at another machine, whatever its size."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost as package
from roost.core.limits.limits import Limits
from tests.api.serving import Served, serving
from tests.cli.running import command

SMALL = Limits(message_bytes=100_000, attachment_bytes=9_000_000, requests_per_second=200, request_burst=20)
"""Limits of a server whose requests have at most 665,536 bytes; the file below has more."""


@pytest.fixture
def server(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server with small limits on another store."""
    with (
        package.open(f"sqlite:///{tmp_path}/elsewhere.db", limits=SMALL) as service,
        serving(service, limits=SMALL) as served,
    ):
        monkeypatch.setenv("ROOST_TOKEN", service.tokens.create("bob", "laptop", scopes=["*"]).secret)
        yield served


def test_a_talk_above_the_limit_of_a_request_is_sent_in_pieces(home: Path, server: Served) -> None:
    file = bytes(range(256)) * 20_000
    with package.open(f"sqlite:///{home}/data/roost.db") as service:
        talk = service.create_talk_session("ann", profile="echo", title="Large")
        sent = service.add_attachment("ann", "large.bin", file)
        service.add_message("ann", talk, "look", attachments=[sent.attachment_id])
        list(service.stream_messages("ann", talk))
    command("export", "ann.roost")
    assert Path("ann.roost").stat().st_size > 6_000_000
    for counted in ((1, 0), (0, 1)):
        done = command("import", "ann.roost", "--server", server.url, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert (found["added"]["talk"], found["kept"]["talk"]) == counted
    (there,) = server.service.list_sessions("bob")
    message = server.service.get_messages("bob", there.talk_session_id).messages[0]
    (kept,) = message.attachments
    assert server.service.get_attachment("bob", kept.attachment_id).data == file


def test_many_mails_are_imported_at_the_pace_that_the_server_allows(home: Path, server: Served) -> None:
    with package.open(f"sqlite:///{home}/data/roost.db") as service:
        for number in range(60):
            service.mail.send("ann", "user:ann", f"mail {number}", "words")
    command("export", "ann.roost")
    for counted in ((60, 0), (0, 60)):
        done = command("import", "ann.roost", "--server", server.url, "--json")
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
        assert (found["added"]["mail"], found["kept"]["mail"]) == counted
    there = server.service.mail.inbox("bob", newest=True)
    assert [(one.subject, one.sender) for one in there] == [
        (f"mail {number}", "imported:user:ann") for number in range(59, -1, -1)
    ]
    assert server.service.mail.arrivals("bob", after="0").mail == ()
