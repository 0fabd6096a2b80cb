"""`kill -9` at each stage of the deletion of a user: the next start completes it, and others keep everything."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import roost
from roost.hosts.pending import drive
from roost.stores.sql.accounts import deletion
from tests.api.conftest import parrot
from tests.conftest import ENVIRONMENT, Open, eventually, settled
from tests.contracts.persons import mentions
from tests.forks import run

DRIVER = Path(__file__).with_name("driver_deletion.py")
STAGES = (1, 2, 5, 9, 12)
"""Writes after which it is killed: the deletion has begun; tasks, agents, talks, other rows are deleted."""


def person(service: roost.AgentService, name: str) -> None:
    service.users.add("root", name)
    service.agents.create_many(name, ["a", "b", "c"])
    for text in ("one", "two", "three"):
        talk = service.create_talk_session(name, profile="parrot")
        service.add_message(name, talk, text)
        settled(service, name, talk)
    service.mail.send(name, "agent:bob/desk", "from", "me")
    service.tokens.create(name, "mine")


async def unfinished(service: roost.AgentService) -> list[deletion.DeletionOrder]:
    return await service.roost.context.store.read(deletion.unfinished)


def test_a_deletion_that_is_killed_at_any_stage_is_completed_by_the_next_start(tmp_path: Path, service: Open) -> None:
    with service({"parrot": parrot}) as one:
        one.agents.create("bob", "desk", shared=True)
        for stage in STAGES:
            person(one, f"person-{stage}")
        eventually(
            lambda: one.agents.get("bob", "desk").state == "idle" and one.mail.unread_count("bob", "agent:desk") == 0
        )
    for stage in STAGES:
        command = [sys.executable, str(DRIVER), str(tmp_path / "roost.db"), f"person-{stage}", str(stage)]
        assert run(command, env=ENVIRONMENT, check=False, timeout=60).returncode == -signal.SIGKILL
    with service({"parrot": parrot}) as one:
        eventually(lambda: drive(unfinished(one)) == [])
        assert mentions(one, "person-") == {}
        assert one.users.list("root") == []
        assert len(one.mail.inbox("bob", "agent:desk")) == len(STAGES)
        assert [entry.action for entry in one.users.audit("root", limit=len(STAGES))] == ["users.delete"] * len(STAGES)
