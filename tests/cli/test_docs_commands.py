"""The commands of the guides work as printed, one after the other, in one store and for one user."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from roost.demos import tour
from roost.demos.tour_brains import BUYER
from tests.cli.running import command
from tests.conftest import eventually
from tests.test_docs import DOCS, blocks, named

GUIDES = [
    *(DOCS / "guides" / f"{name}.md" for name in ("agents", "messages", "meetings", "tools")),
    DOCS / "concepts" / "journal.md",
    *(DOCS / "guides" / f"{name}.md" for name in ("api-tokens", "openai", "webhooks", "users", "sign-in")),
    DOCS / "reference" / "command-line.md",
    *(DOCS / "guides" / f"{name}.md" for name in ("pages", "configure")),
]
"""Pages in the order of reading. The last two remove the tour and restore a backup."""
ENDLESS = {"agents watch", "chat", "demo tictactoe", "meetings attend", "meetings watch", "node", "up"}
"""Commands that people end, or that need a terminal."""
ELSEWHERE = {"doctor", "drain", "login", "models", "nodes", "webhooks deliveries", "webhooks test"}
"""Commands that need the network, a server, a cluster or a brain that a program has; other tests run them."""
LISTS = {
    "APPROVAL": ("approvals ls", "approvalId"),
    "MEETING": ("meetings ls", "meetingId"),
    "RUN": ("runs ls", "runId"),
    "TALK": ("talks ls", "talkSessionId"),
}
"""Names that stand for an id, with the command that lists such ids."""


@pytest.fixture
def used(home: Path) -> Path:
    """A store in which something has happened: a talk with a file, the tour, and approvals that wait."""
    with roost.open() as service:
        tour.build(service, "ann", pace=0)
        service.agents.configure("ann", BUYER, max_concurrent_tasks=10)
        for number in range(2):
            service.tasks.send("ann", BUYER, f"Order {number}")
        eventually(lambda: len(service.approvals.list("ann")) == 3 and len(service.runs.list("ann")) > 5)
        talk = service.create_talk_session("ann", profile="echo")
        file = service.add_attachment("ann", "seeds.csv", b"oak,3")
        service.add_message("ann", talk, "a big bird", attachments=[file.attachment_id])
        for _ in service.stream_messages("ann", talk):
            pass
    return home


def commands(page: Path) -> Iterator[list[str]]:
    """Yield the commands of a page that a test can run."""
    for block in blocks(page, "sh"):
        for line in block.text.splitlines():
            words = shlex.split(line, comments=True)
            if words and words[0] == "roost" and is_runnable(words[1:], line):
                yield words[1:]


def is_runnable(words: list[str], line: str) -> bool:
    is_piped = re.search(r" [<>|] ", line)
    return not is_piped and "--server" not in words and not {words[0], " ".join(words[:2])} & (ENDLESS | ELSEWHERE)


def with_ids(words: list[str]) -> list[str]:
    return [newest(*LISTS[word]) if word in LISTS else word for word in words]


def newest(listing: str, name: str) -> str:
    found = json.loads(command(*listing.split(), "--json").stdout)
    return str(found[0][name])


def test_the_commands_of_the_guides_work_one_after_the_other(used: Path) -> None:
    failed, count = [], 0
    for page in GUIDES:
        for words in commands(page):
            done = command(*with_ids(words), stdin=f"{words[-1]}\n")  # a deletion asks for the name
            count += 1
            if done.exit_code != 0:
                failed.append(f"{named(page)}: roost {shlex.join(words)}: {done.output}{done.stderr}")
    assert count > 50
    assert not failed, "\n".join(failed)
