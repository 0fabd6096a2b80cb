"""Counting of attempts to sign in, and the text of a refusal."""

from __future__ import annotations

import pytest

from roost.api.sign_in.guesses import GuessLimit, TooManyGuesses, network
from tests.api.serving import Served


@pytest.mark.parametrize(
    ("address", "counted"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::"),
        ("2001:db8::ffff", "2001:db8::"),
        ("2001:db8:0:1::1", "2001:db8:0:1::"),
        ("testclient", "testclient"),
        ("", ""),
    ],
)
def test_addresses_of_one_ipv6_network_are_one(address: str, counted: str) -> None:
    assert network(address) == counted


def test_what_was_typed_as_the_name_is_not_stored(served: Served) -> None:
    limit = GuessLimit(served.service.asynchronous, served.identity)
    guesser = limit._guesser("a password, typed into the wrong field", "192.0.2.1")
    parts = (guesser.account, guesser.address, guesser.pair)
    assert len(set(parts)) == 3
    assert all(len(part) == 43 and "password" not in part for part in parts)
    assert limit._guesser("x" * 60_000, "") == limit._guesser("x" * 100, "")


def test_the_refusal_has_the_time_to_wait_in_words() -> None:
    assert str(TooManyGuesses(0.2)) == "Too many attempts. Wait 1 second, then try again."
    assert "Wait 40 seconds" in str(TooManyGuesses(39.5))
    assert "Wait 15 minutes" in str(TooManyGuesses(900))
