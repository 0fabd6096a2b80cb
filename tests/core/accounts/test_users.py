"""Rules of accounts: names, passwords, texts of the audit list."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.accounts import passwords
from roost.core.accounts.users import account_name, audit_text, free_name, typed_name
from roost.core.values import checks
from roost.errors import Invalid, Unavailable


@pytest.mark.parametrize("name", ["ann", "a", "ann.b@example.com", "7up", "a" * 64, "x_y-z+1"])
def test_names_that_are_easy_to_type_are_valid(name: str) -> None:
    assert account_name(name) == checks.name(name, "the user id") == name


@pytest.mark.parametrize("name", ["", "Ann", "-ann", "ann b", "a/b", "a:b", "ü", "a" * 65, "ann\n", "a\0", 5, None])
def test_other_names_are_refused_with_what_is_allowed(name: object) -> None:
    with pytest.raises(Invalid, match="lower-case letters"):
        account_name(name)


def test_nobody_gets_a_name_like_those_of_deleted_users() -> None:
    with pytest.raises(Invalid, match="deleted users"):
        account_name("deleted-3f9a01c2d4e5")
    assert free_name("Deleted-3f9a01c2d4e5", {"user"}) == "user-2"


@given(st.text(), st.sets(st.text(alphabet="ab-1234567890", max_size=4)))
def test_a_free_name_is_valid_and_free(suggested: str, taken: set[str]) -> None:
    found = free_name(suggested, taken | {typed_name(suggested), "user"})
    assert found not in taken | {typed_name(suggested), "user"}
    assert account_name(found) == found


@given(st.text(st.characters()))
def test_a_text_of_the_audit_list_is_one_short_line_that_every_store_keeps(text: str) -> None:
    kept = audit_text(text)
    assert len(kept) <= 500
    assert kept.isprintable()
    kept.encode()


@pytest.mark.parametrize(
    ("password", "told"),
    [
        ("", "must not be empty"),
        ("short", "10 to 1,000 characters, not 5"),
        ("x" * 1_001, "10 to 1,000 characters, not 1,001"),
        ("x" * 5_000, "too long"),
        ("ann.example", "must not be the name"),
        ("ANN.example", "must not be the name"),
        ("with a \0 in it", "NUL"),
        ("\ud800" * 12, "surrogate"),
        (b"bytes of a password", "must be a text"),
        (None, "must be a text"),
    ],
)
def test_a_password_that_is_not_allowed_is_refused_with_the_reason(password: object, told: str) -> None:
    with pytest.raises(Invalid, match=told):
        passwords.checked_password(password, "ann.example")


def test_a_password_is_the_same_however_its_characters_are_typed() -> None:
    stored = passwords.hashed(passwords.checked_password("grüße an alle", "ann"))
    assert passwords.matches(passwords.normal("gru\u0308ße an alle"), stored)
    assert not passwords.matches(passwords.normal("grusse an alle"), stored)


def test_a_hash_is_argon2id_with_its_own_salt_and_nothing_matches_no_hash() -> None:
    one, two = passwords.hashed("correct horse"), passwords.hashed("correct horse")
    assert one != two
    assert one.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert not passwords.matches("correct horse", None)
    assert not passwords.matches("correct horse", "not a hash")


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "argon2", None)
    passwords._hasher.cache_clear()
    with pytest.raises(Unavailable, match=r"roost\[ui\]"):
        passwords.hashed("correct horse")
    with pytest.raises(Unavailable, match=r"roost\[ui\]"):
        passwords.matches("correct horse", None)
