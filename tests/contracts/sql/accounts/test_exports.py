"""Exports of a user on every store: parts that are one JSON object together, with rows of this user alone."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.core.accounts.users import ExportPart
from roost.errors import Invalid, NotFound
from roost.stores.sql.accounts import exports
from roost.stores.sql.accounts.belongings import EXPORTED, KNOWN_BY, REMAINING, params
from roost.stores.sql.talks import messages, talks
from tests.contracts.conftest import Driven
from tests.contracts.sql import test_tokens
from tests.contracts.sql.accounts.test_accounts import with_password

LONG = "x" * 100_000


def post(store: Driven, talk: str, user: str, number: int) -> None:
    text = f"{number} of {user} {LONG}"
    store.write(messages.post, user, talk, text, None, None, "title", f"env_{talk}_{number}", 1.0, 100)


def populated(store: Driven, user: str, count: int) -> None:
    with_password(store, user)
    store.write(talks.create, f"talk_{user}", user, "echo", "queue", "", "{}", 10)
    for number in range(count):
        post(store, f"talk_{user}", user, number)


def parts(store: Driven, user: str) -> list[ExportPart]:
    found: list[ExportPart] = [store.read(exports.part, user, "", "today")]
    while (after := found[-1].after) is not None:
        found.append(store.read(exports.part, user, after, "today"))
    return found


def joined(found: list[ExportPart]) -> dict[str, Any]:
    whole: dict[str, Any] = json.loads("".join(one.text for one in found))
    return whole


def test_the_parts_are_one_object_with_each_row_once_and_none_of_others(store: Driven) -> None:
    populated(store, "ann", 20)
    populated(store, "bob", 1)
    found = parts(store, "ann")
    whole = joined(found)
    assert len(found) > 2, "a part ends when it is large"
    assert (whole["user"], whole["exported"]) == ("ann", "today")
    assert list(whole)[4:] == [one.table for one in EXPORTED]
    assert [one["content"] for one in whole["messages"]] == [f"{number} of ann {LONG}" for number in range(20)]
    assert [one["user_id"] for one in whole["accounts"]] == ["ann"]
    assert "bob" not in json.dumps(whole)


def test_a_small_user_is_one_part_without_secrets(store: Driven) -> None:
    with_password(store, "ann")
    test_tokens.created(store, 1)
    [only] = parts(store, "ann")
    whole = joined([only])
    [account], [token] = whole["accounts"], whole["tokens"]
    assert (account["role"], token["name"]) == ("user", "name 1")
    assert not {"password", "epoch"} & account.keys()
    assert "digest" not in token


def test_a_user_without_data_and_a_wrong_cursor_are_refused(store: Driven) -> None:
    with_password(store, "ann")
    with pytest.raises(NotFound, match="neither an account nor data"):
        store.read(exports.part, "bob", "", "today")
    messages_at = next(number for number, one in enumerate(EXPORTED) if one.table == "messages")
    wrong = [
        "x",
        "[]",
        "{}",
        "[-1]",
        "[1000]",
        '["0"]',
        f'[{messages_at}, "talk_1", "1"]',
        f'[{messages_at}, "talk_1"]',
    ]
    for cursor in wrong:
        with pytest.raises(Invalid, match="previous part"):
            store.read(exports.part, "ann", cursor, "today")


@pytest.mark.parametrize("conditions", [KNOWN_BY, REMAINING], ids=["known by", "remaining"])
def test_rows_of_a_user_are_found_by_an_index(tmp_path: Path, conditions: dict[str, str]) -> None:
    """A new name is checked, and a user is deleted, in writes that others wait for."""
    roost.open(f"sqlite:///{tmp_path}/roost.db").close()
    scanned = []
    with closing(sqlite3.connect(tmp_path / "roost.db")) as database:
        for table, where in conditions.items():
            plan = database.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM {table} WHERE {where}", params("ann"))
            scanned += [table for *_, step in plan if step.startswith("SCAN")]
    assert scanned == []
