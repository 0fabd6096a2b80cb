"""A deleted user is in no table any more, and others have what they had."""

from __future__ import annotations

import json
from typing import Any

import pytest

import roost
from roost.errors import NotFound
from roost.hosts.pending import drive
from roost.stores.sql.accounts.belongings import EXPORTED, KEYS, NOT_EXPORTED, REMAINING
from tests.contracts.persons import PASSWORD, account, columns, mentions, opened, populate

PERSON = "zoe7.w@example.com"


def exported(service: roost.AgentService, name: str) -> dict[str, Any]:
    part = service.users.export("root", name)
    texts = [part.text]
    while part.after is not None:
        part = service.users.export("root", name, after=part.after)
        texts.append(part.text)
    found: dict[str, Any] = json.loads("".join(texts))
    return found


def test_a_deleted_user_is_in_no_row_of_any_table_and_the_export_had_everything(url: str) -> None:
    with opened(url) as service:
        populate(service, PERSON, "bob")
        before, everything = mentions(service, PERSON), exported(service, PERSON)
        theirs = len(service.agents.list("bob")), [one.mail_id for one in service.mail.inbox("bob", "agent:desk")]
        unexpected = before.keys() - {one.table for one in EXPORTED} - NOT_EXPORTED.keys()
        assert (len(before) > 20, unexpected) == (True, set())
        assert [one.table for one in EXPORTED if not everything[one.table]] == []
        service.users.delete("root", PERSON)
        left = mentions(service, PERSON)
        assert left == {"artifacts": left["artifacts"]}
        assert [f"'app/x/{PERSON}'" in row for row in left["artifacts"]] == [True]  # of the user x/…
        kept = service.mail.inbox("bob", "agent:desk")
        assert theirs == (len(service.agents.list("bob")), [one.mail_id for one in kept])
        assert {one.sender[:13] for one in kept} == {"user:deleted-"}
        assert all(
            "deleted-" in service.meetings.minutes("bob", one.meeting_id) for one in service.meetings.list("bob")
        )
        service.tasks.wait("bob", service.tasks.send("bob", "desk", "more"), 30)
        with pytest.raises(NotFound):
            service.users.delete("root", PERSON)
        [entry] = service.users.audit("root", limit=1)
        assert (entry.actor, entry.action, entry.target[:8]) == ("root", "users.delete", "deleted-")


def test_an_export_has_all_values_and_no_secret(url: str) -> None:
    with opened(url) as service:
        populate(service, PERSON, "bob")
        found = exported(service, PERSON)
        text = json.dumps(found)
        assert (found["kind"], found["user"]) == ("roost.user", PERSON)
        assert {"likes birds", "to your desk", "hello again"} <= {
            *(one["text"] for one in found["memories"]),
            *(one["subject"] for one in found["mail"]),
            *(one["content"] for one in found["messages"]),
        }
        assert not [secret for secret in (PASSWORD, "argon2", "digest") if secret in text]
        assert found["attachment_pieces"][0]["data"] == "c2VlZHM="


def test_every_table_and_column_is_exported_or_says_why_not(url: str) -> None:
    with opened(url) as service:
        found = columns(service)
    tables = found.keys()
    assert {one.table for one in EXPORTED} | NOT_EXPORTED.keys() == tables
    assert not {one.table for one in EXPORTED} & NOT_EXPORTED.keys()
    assert REMAINING.keys() <= KEYS.keys() <= tables
    assert {one.table: {*one.columns, *one.hidden} for one in EXPORTED} == {
        one.table: found[one.table] for one in EXPORTED
    }


def test_a_name_that_was_deleted_can_be_used_again_and_finds_nothing(url: str) -> None:
    with opened(url) as service:
        account(service, PERSON)
        service.users.delete("root", PERSON)
        assert drive(service.asynchronous.users.authenticate(PERSON, PASSWORD, "")) is None
        service.users.add("root", PERSON)
        assert service.tokens.list(PERSON) == []
