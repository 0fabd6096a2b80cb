"""The deletion of a user with much data: it shows its progress, continues without its caller, and lets others work."""

from __future__ import annotations

import json
import time

import pytest

import roost
from roost.core.accounts.deletions import Deletion
from roost.errors import NotFound
from tests.api.conftest import parrot
from tests.api.serving import serving
from tests.conftest import QUICK, eventually
from tests.contracts.persons import mentions, rows

PERSON = "zoe7.w@example.com"
SIZES = [
    pytest.param(20, 50, id="1,000 messages"),
    pytest.param(20, 1_000, id="20,000 messages", marks=pytest.mark.soak),
    pytest.param(1, 20_000, id="20,000 messages of one talk", marks=pytest.mark.soak),
]


def fill(service: roost.AgentService, talks: int, messages: int) -> None:
    talk: dict[str, object] = {
        "title": "",
        "profile": "parrot",
        "agent": None,
        "busy": "queue",
        "options": {},
        "created": "2026-01-01T00:00Z",
    }
    said = {"sender": "user", "text": "words " * 40, "status": "complete", "created": "2026-01-01T00:00Z"}
    text = json.dumps({"kind": "roost.talk", "version": 1, "talk": talk, "messages": [said] * messages})
    for _ in range(talks):
        service.import_talk(PERSON, text)
    service.agents.create_many(PERSON, [f"a{number}" for number in range(talks)])
    for number in range(talks * 5):
        service.mail.send(PERSON, f"user:{PERSON}", f"mail {number}", "words")


@pytest.mark.parametrize(("talks", "messages"), SIZES)
def test_a_large_user_is_deleted_in_steps_that_are_shown_while_others_work(url: str, talks: int, messages: int) -> None:
    with roost.open(url, brains={"parrot": parrot}, default="parrot", limits=QUICK) as service:
        fill(service, talks, messages)
        assert len(rows(service)["messages"]) == talks * messages
        bobs = service.create_talk_session("bob")
        began = time.monotonic()
        seen, longest = [service.users.delete("root", PERSON, 0)], 0.0
        while not seen[-1].is_over:
            asked = time.monotonic()
            service.rename("bob", bobs, f"title {len(seen)}")
            longest = max(longest, time.monotonic() - asked)
            seen.append(_further(service))
        print(f"deleted in {time.monotonic() - began:.2f} s; the longest write of another took {longest:.2f} s")
        assert not seen[0].is_over
        assert [one.removed for one in seen[:-1]] == sorted(one.removed for one in seen[:-1])
        assert (mentions(service, PERSON), rows(service)["messages"]) == ({}, [])
        assert longest < 10


def _further(service: roost.AgentService) -> Deletion:
    try:
        return service.users.delete("root", PERSON, 0.02)
    except NotFound:
        return Deletion(PERSON, is_over=True)


def test_a_deletion_continues_without_its_caller_and_a_client_waits_for_its_end(url: str) -> None:
    with (
        roost.open(url, brains={"parrot": parrot}, default="parrot", limits=QUICK) as service,
        serving(service) as served,
    ):
        fill(service, 5, 50)
        with roost.connect(served.url, served.identity.token) as client:
            assert not client.users.delete("root", PERSON, 0).is_over
            eventually(lambda: mentions(service, PERSON) == {}, 30)
            with pytest.raises(NotFound):
                client.users.delete("root", PERSON)
            fill(service, 5, 50)
            assert client.users.delete("root", PERSON) == Deletion(PERSON, is_over=True)
            assert mentions(service, PERSON) == {}
