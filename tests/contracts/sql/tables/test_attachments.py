"""Attachments on every store: pieces, messages that have them, and what is deleted with what."""

from __future__ import annotations

from typing import Any

import pytest

from roost.core.limits.limits import Limits
from roost.core.talks.attachments import PIECE, Attachment, described, pieces
from roost.core.talks.branches import BranchAction, NewBranch
from roost.core.talks.runs import Posted
from roost.errors import Conflict, NotFound
from roost.ports import Tx
from roost.stores.sql import retention, stored_size
from roost.stores.sql.tables import attachments
from roost.stores.sql.talks import answers, branches, messages, talks, transcripts
from tests.contracts.conftest import Driven

DATA = bytes(range(256)) * 5
NOW = 1_900_000_000.0


@pytest.fixture
def talk(store: Driven) -> str:
    store.write(talks.create, "talk_1", "ann", "echo", "queue", "", "{}", 10)
    return "talk_1"


def upload(store: Driven, name: str = "a", data: bytes = DATA, user: str = "ann") -> Attachment:
    file = described(f"attachment_{name}", f"{name}.bin", data, most=Limits().attachment_bytes)
    saved: Attachment = store.write(attachments.save, user, file, 0, list(pieces(data)), True, NOW)
    return saved


def post(store: Driven, talk: str, *names: str, key: str | None = None, user: str = "ann") -> Posted:
    ids = [f"attachment_{name}" for name in names]
    sent = ("look", key, None, "t", f"env_{talk}_{'_'.join(names)}", 0.0, 9, ids)
    posted: Posted = store.write(messages.post_with_attachments, user, talk, *sent)
    return posted


def rows(store: Driven) -> list[int]:
    def count(tx: Tx) -> list[Any]:
        tables = ("attachments", "attachment_pieces", "message_attachments")
        return [row[0] for table in tables if (row := tx.one(f"SELECT count(*) FROM {table}"))]

    found: list[int] = store.read(count)
    return found


def test_a_file_in_many_pieces_is_read_whole_and_by_piece_when_it_is_complete(store: Driven) -> None:
    data = DATA * (2 * PIECE // len(DATA)) + b"end"
    file, parts = described("attachment_a", "a.bin", data, most=1 << 30), list(pieces(data))
    store.write(attachments.save, "ann", file, 0, parts[:1], False, NOW)
    with pytest.raises(NotFound):
        store.read(attachments.get, "ann", "attachment_a")
    store.write(attachments.save, "ann", file, 1, parts[1:], True, NOW)
    assert store.read(attachments.get, "ann", "attachment_a") == file
    assert store.read(attachments.read, "attachment_a") == data
    assert [store.read(attachments.read_piece, "attachment_a", n) for n in (0, 1, len(parts))] == [*parts[:2], b""]
    assert store.read(stored_size.stored_chars, "ann") == len(data)
    with pytest.raises(NotFound):
        store.read(attachments.get, "bob", "attachment_a")
    with pytest.raises(NotFound):
        store.read(attachments.read, "attachment_b")


def test_a_message_has_its_files_wherever_it_is_read(store: Driven, talk: str) -> None:
    files = (upload(store, "b"), upload(store, "a", b"text"))
    posted = post(store, talk, "b", "a", key="k")
    assert posted.message.attachments == files
    assert store.read(messages.before, "ann", talk, 9, 9) == [posted.message]
    assert store.read(messages.changed, "ann", talk, 0, 0, 9) == [posted.message]
    assert store.read(answers.message_at, talk, 1) == posted.message
    assert store.read(talks.load, "ann", talk, 9).messages[0][0] == posted.message
    assert store.read(transcripts.files, [posted.message]) == {"attachment_b": DATA, "attachment_a": b"text"}
    assert post(store, talk, "b", "a", key="k").repeated
    for other in ((), ("a", "b"), ("b",)):
        with pytest.raises(Conflict):
            post(store, talk, *other, key="k")


def test_an_unknown_a_used_or_another_users_file_changes_nothing(store: Driven, talk: str) -> None:
    upload(store, "a")
    upload(store, "his", user="bob")
    post(store, talk, "a")
    upload(store, "free")
    for names, error in ((("a",), Conflict), (("free", "gone"), NotFound), (("his",), NotFound)):
        with pytest.raises(error):
            post(store, talk, *names)
    with pytest.raises(NotFound):
        post(store, "talk_of_nobody", "free")
    assert [message.seq for message in store.read(messages.before, "ann", talk, 9, 9)] == [1]
    assert post(store, talk, "free").message.seq == 2


def test_a_file_is_deleted_with_the_last_talk_that_has_it(store: Driven, talk: str) -> None:
    upload(store, "a")
    upload(store, "b")
    post(store, talk, "a")
    post(store, talk, "b")
    fork = NewBranch("talk_2", BranchAction.FORK, 1, "env_2")
    store.write(branches.create, "ann", talk, fork, 10, 0.0)
    edit = NewBranch("talk_3", BranchAction.EDIT, 2, "env_3", content="look again")
    store.write(branches.create, "ann", talk, edit, 10, 0.0)
    edited = store.read(messages.before, "ann", "talk_3", 9, 9)
    assert [[one.name for one in message.attachments] for message in edited] == [["a.bin"], ["b.bin"]]
    store.write(branches.delete, "ann", talk)
    assert rows(store) == [1, 1, 1]
    assert store.read(attachments.read, "attachment_a") == DATA
    store.write(talks.delete, "ann", "talk_2")
    assert rows(store) == [0, 0, 0]


def test_an_upload_that_no_message_has_is_removed_when_it_is_old(store: Driven, talk: str) -> None:
    upload(store, "0")
    upload(store, "1")
    post(store, talk, "1")
    page = store.read(retention.old, "attachments", NOW + 1, (), 10)
    assert page.keys == (("attachment_0",),)
    assert store.read(retention.old, "attachments", NOW - 1, (), 10).keys == ()
    assert store.write(retention.remove, "attachments", NOW + 1, [("attachment_0",), ("attachment_1",)]) == 1
    assert rows(store) == [1, 1, 1]
    assert store.write(attachments.remove, []) == 0
