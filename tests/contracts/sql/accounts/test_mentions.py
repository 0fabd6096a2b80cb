"""Mentions of a deleted user on every store: others keep what they have, with a pseudonym in it."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core.accounts.pseudonyms import Renaming
from roost.core.meetings.log.bodies import Said
from roost.stores.sql import mail
from roost.stores.sql.accounts import mentions
from roost.stores.sql.meetings import registry
from tests.contracts.conftest import Driven
from tests.contracts.sql.meetings.test_meetings import act, call, create, posted, rows, settle
from tests.contracts.sql.test_mail import written

NAMES = Renaming("ann", "deleted-1")
BOB, D = "user:bob", "agent:bob/d"


def senders(store: Driven) -> list[str]:
    return [row[0] for row in store.read(lambda tx: tx.read("SELECT sender FROM mail ORDER BY mail_id"))]


def found_mail(store: Driven, after: tuple[Any, ...] = (), limit: int = 10) -> list[Any]:
    found: list[Any] = store.read(mentions.find, "mail", NAMES, after, limit)
    return found


def shared(store: Driven) -> str:
    create(store, "d", user="bob", shared=True)
    meeting = call(store, D).seated.meeting_id
    settle(store)
    act(store, meeting, Said("remember this"))
    settle(store)
    return meeting


def test_the_name_is_replaced_in_what_others_have_and_a_longer_name_stays(store: Driven) -> None:
    for number, sender in enumerate(("user:ann", "user:ann-2", "agent:ann/d", "user:joann")):
        store.write(mail.send, written(number, to=BOB, sender=sender))
    found = found_mail(store)
    assert store.write(mentions.rename, "mail", NAMES, found) == 2
    assert senders(store) == ["user:deleted-1", "user:ann-2", "agent:deleted-1/d", "user:joann"]
    assert store.write(mentions.rename, "mail", NAMES, found_mail(store)) == 0


def test_a_row_that_has_changed_since_it_was_found_is_not_overwritten(store: Driven) -> None:
    for number in range(2):
        store.write(mail.send, written(number, to=BOB, sender="user:ann"))
    found = found_mail(store)
    store.write(lambda tx: tx.write("UPDATE mail SET sender = 'other' WHERE mail_id = 'mail_0000'"))
    assert store.write(mentions.rename, "mail", NAMES, found) == 1
    assert senders(store) == ["other", "user:deleted-1"]


def test_mentions_are_found_in_pages(store: Driven) -> None:
    for number in range(3):
        store.write(mail.send, written(number, to=BOB, sender="user:ann"))
    first = found_mail(store, limit=2)
    second = found_mail(store, (first[-1][0],), limit=2)
    assert [row[0] for row in (*first, *second)] == ["mail_0000", "mail_0001", "mail_0002"]


@pytest.mark.parametrize("table", mentions.COLUMNS)
def test_the_key_of_each_table_with_mentions_is_its_primary_key(store: Driven, table: str) -> None:
    keys, _ = mentions.COLUMNS[table]
    after = tuple(0 if key == "step" else "" for key in keys)
    assert store.read(mentions.find, table, NAMES, after, 10) == []
    conflict = f"INSERT INTO {table} SELECT * FROM {table} WHERE 1 = 0 ON CONFLICT ({', '.join(keys)}) DO NOTHING"
    store.write(lambda tx: tx.write(conflict))  # refused unless these columns are unique


def test_shared_meetings_are_those_that_the_user_took_part_in(store: Driven) -> None:
    meeting = shared(store)
    create(store, "e", user="ann-2")
    call(store, "agent:ann-2/e", by="user:ann-2")
    settle(store)
    assert store.read(mentions.shared_meetings, NAMES, 100) == [meeting]
    assert store.read(mentions.shared_meetings, Renaming("an", "deleted-2"), 100) == []


def test_a_shared_meeting_is_reduced_to_minutes_with_the_pseudonym_and_ends(store: Driven) -> None:
    meeting, other = shared(store), call(store, by=BOB).seated.meeting_id
    assert [e.address for e in posted(store)] == ["bob/d"], "a turn waits"
    assert store.write(mentions.reduce_meeting, meeting, NAMES, 400.0) == 2
    assert set(rows(store, "meeting_log")) == {BOB}, "the log of the other meeting stays"
    who, log, minutes = store.read(registry.find_for_user, "bob", meeting, None)
    assert (who, log) == (D, None)
    assert "remember this" in minutes
    assert "deleted-1" in minutes
    assert "user:ann" not in minutes
    [seat] = store.read(registry.listed, "bob", D, None, 10, "\x7f")
    assert (seat.meeting_id, seat.phase) == (meeting, "ended")
    assert posted(store) == []
    assert store.read(mentions.shared_meetings, NAMES, 100) == []
    assert store.write(mentions.reduce_meeting, meeting, NAMES, 500.0) == 0
    assert [one.meeting_id for one in store.read(registry.open_meetings, BOB)] == [other]
