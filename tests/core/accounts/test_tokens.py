"""Scopes of tokens: what they allow, and which there are."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.accounts.tokens import ACTIONS, NOUNS, allows, checked_scopes, digest, new_secret
from roost.core.values.secrets import Redactor
from roost.errors import Invalid
from roost.sync import HANDLERS

NEEDED = st.builds(lambda noun, action: f"{noun}:{action}", st.sampled_from(NOUNS), st.sampled_from(ACTIONS))


@given(needed=NEEDED, noun=st.sampled_from(NOUNS), action=st.sampled_from(ACTIONS))
def test_a_scope_allows_what_it_names_and_nothing_else(needed: str, noun: str, action: str) -> None:
    assert allows(["*"], needed)
    assert allows([noun], needed) is (needed.partition(":")[0] == noun)
    assert allows([f"{noun}:{action}"], needed) is (needed == f"{noun}:{action}")
    assert allows([f"*:{action}"], needed) is needed.endswith(f":{action}")
    assert not allows([], needed)


def test_only_a_token_for_everything_may_create_tokens() -> None:
    every = [*NOUNS, "*:read", "*:write", *(f"{noun}:{action}" for noun in NOUNS for action in ACTIONS)]
    assert not allows(every, "tokens:write")
    assert allows(["*"], "tokens:write")


def test_every_namespace_is_a_noun_of_scopes() -> None:
    assert set(NOUNS) == HANDLERS.keys() - {"sleep_scheduler", "tokens", "users", "nodes"}


@pytest.mark.parametrize(
    "scopes", [[], "talks", ["talk"], ["talks:"], ["talks:all"], ["tokens"], [":read"], ["*:"], [""], [None], [5], 7]
)
def test_a_scope_that_is_not_known_is_refused(scopes: Any) -> None:
    with pytest.raises(Invalid, match="scope"):
        checked_scopes(scopes)


def test_a_scope_counts_once() -> None:
    assert checked_scopes(["talks", "mail:read", "talks"]) == ("talks", "mail:read")


def test_a_secret_is_long_differs_each_time_and_is_recognised() -> None:
    secrets = {new_secret() for _ in range(100)}
    assert len(secrets) == len({digest(one) for one in secrets}) == 100
    for secret in secrets:
        assert secret not in Redactor().clean(f"sent {secret}, refused")
