"""API tokens on every store: of one user, found by the digest of their secret, and gone when revoked."""

from __future__ import annotations

import pytest

from roost.core.accounts.tokens import ApiToken, digest
from roost.errors import LimitReached, NotFound
from roost.stores.sql import tokens
from roost.stores.sql.accounts import accounts, audit
from tests.contracts.conftest import Driven
from tests.contracts.sql.accounts.test_accounts import act, added


def created(store: Driven, number: int, user: str = "ann", life: float | None = None, most: int = 10) -> ApiToken:
    found: ApiToken = store.write(
        tokens.create,
        f"token_{number}",
        user,
        f"name {number}",
        digest(f"s{number}"),
        "a b:read",
        life,
        most,
        act(user, number),
    )
    return found


def test_a_token_is_found_by_its_digest_and_listed_for_its_user_alone(store: Driven) -> None:
    one, two, other = created(store, 1), created(store, 2, life=50.0), created(store, 3, user="bob")
    assert (one.scopes, one.expires) == (("a", "b:read"), None)
    assert two.expires is not None
    assert two.expires.timestamp() == 152.0
    assert store.read(tokens.find, digest("s2")) == two
    assert store.read(tokens.find, digest("never")) is None
    assert store.read(tokens.listed, "ann", 10, "") == [one, two]
    assert store.read(tokens.listed, "ann", 1, "") == [one]
    assert store.read(tokens.listed, "ann", 10, one.token_id) == [two]
    assert store.read(tokens.listed, "bob", 10, "") == [other]


def test_a_revoked_token_is_gone_and_only_its_owner_can_revoke_it(store: Driven) -> None:
    one = created(store, 1)
    with pytest.raises(NotFound):
        store.write(tokens.revoke, "bob", one.token_id, act("bob"))
    assert store.read(tokens.find, digest("s1")) == one
    store.write(tokens.revoke, "ann", one.token_id, act("ann"))
    assert store.read(tokens.find, digest("s1")) is None
    with pytest.raises(NotFound):
        store.write(tokens.revoke, "ann", one.token_id, act("ann"))


def test_the_number_of_tokens_of_a_user_is_limited(store: Driven) -> None:
    for number in range(3):
        created(store, number, most=3)
    with pytest.raises(LimitReached, match="revoke some first"):
        created(store, 9, most=3)
    assert created(store, 4, user="bob", most=3).user_id == "bob"


def test_tokens_of_a_disabled_user_are_not_found_and_those_of_others_are(store: Driven) -> None:
    mine, theirs, nobodys = created(store, 1), created(store, 2, user="bob"), created(store, 3, user="visitor")
    added(store, "ann")
    added(store, "bob")
    store.write(accounts.disable, "ann", act())
    assert store.read(tokens.find, digest("s1")) is None
    assert [store.read(tokens.find, digest(f"s{number}")) for number in (2, 3)] == [theirs, nobodys]
    store.write(accounts.enable, "ann", act())
    assert store.read(tokens.find, digest("s1")) == mine


def test_what_happens_to_tokens_is_recorded_without_their_digests(store: Driven) -> None:
    one = created(store, 1)
    store.write(tokens.revoke, "ann", one.token_id, act("ann", action="tokens.revoke"))
    with pytest.raises(NotFound):
        store.write(tokens.revoke, "ann", one.token_id, act("ann"))
    entries = store.read(audit.listed, 10, "")
    assert [(entry.actor, entry.target, entry.detail) for entry in entries] == [
        ("ann", "ann", "token_1"),
        ("ann", "ann", "token_1 name 1: a b:read"),
    ]
