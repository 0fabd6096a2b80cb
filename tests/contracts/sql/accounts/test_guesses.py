"""Guessing of passwords is slowed, and nobody is locked out for long; on every store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from roost.core.accounts.guesses import FAMILIAR, FORGOTTEN, FREE, LONGEST_FOR_ACCOUNT, LONGEST_FOR_ADDRESS, Guesser
from roost.stores.sql.accounts import guesses
from tests.contracts.conftest import Driven


class Guesses:
    """Tries at a time that stands still."""

    def __init__(self, store: Driven) -> None:
        self.store = store
        self.now = 1_000_000.0

    def take(self, name: str, address: str) -> float:
        """Try; return the seconds to wait, or 0 if the try was counted."""
        wait: float = self.store.write(guesses.take, of(name, address), self.now)
        assert wait == 0 or self.store.read(guesses.waiting, of(name, address), self.now) == wait
        return wait

    def succeeded(self, name: str, address: str) -> None:
        self.store.write(guesses.succeeded, of(name, address), self.now)

    def rows(self) -> int:
        return int(self.store.read(lambda tx: tx.read("SELECT count(*) FROM password_guesses"))[0][0])


def of(name: str, address: str) -> Guesser:
    return Guesser(name and f"account {name}", address and f"address {address}", name and f"pair {address} {name}")


@pytest.fixture
def tried(store: Driven) -> Guesses:
    return Guesses(store)


def test_after_five_failures_each_further_one_has_to_wait_longer(tried: Guesses) -> None:
    assert [tried.take("ann", "one") for _ in range(FREE)] == [0] * FREE
    waits = []
    for _ in range(9):
        waits.append(tried.take("ann", "one"))
        tried.now += waits[-1]
        assert tried.take("ann", "one") == 0
    assert waits[:4] == [5, 10, 20, 40]
    assert waits == sorted(waits)
    assert tried.take("ann", "one") <= LONGEST_FOR_ADDRESS


def test_an_account_is_slowed_from_all_addresses_and_an_address_for_all_accounts(tried: Guesses) -> None:
    for number in range(FREE):
        assert tried.take("ann", f"place {number}") == 0
        assert tried.take(f"user{number}", "cafe") == 0
    assert tried.take("ann", "elsewhere") == 5
    assert tried.take("carl", "cafe") == 5
    assert tried.take("carl", "elsewhere") == 0


def test_strangers_delay_an_account_by_a_minute_at_most_and_not_where_it_is_used(tried: Guesses) -> None:
    tried.take("ann", "home")
    tried.succeeded("ann", "home")
    for number in range(50):
        tried.now += tried.take("ann", f"place {number}")
        tried.take("ann", f"place {number}")
    assert 0 < tried.take("ann", "elsewhere") <= LONGEST_FOR_ACCOUNT
    assert tried.take("ann", "home") == 0


def test_an_address_is_familiar_for_a_month_since_the_last_sign_in(tried: Guesses) -> None:
    tried.take("ann", "home")
    tried.succeeded("ann", "home")
    for is_familiar in (True, False):
        tried.now += FAMILIAR - FORGOTTEN
        for number in range(FREE):
            tried.take("ann", f"place {number}")
        assert (tried.take("ann", "home") == 0) is is_familiar


def test_tries_that_come_too_early_are_not_counted(tried: Guesses) -> None:
    for _ in range(FREE):
        tried.take("ann", "one")
    assert {tried.take("ann", "one") for _ in range(20)} == {5}
    tried.now += 5
    assert tried.take("ann", "one") == 0


def test_a_success_does_not_forget_failures_of_its_address(tried: Guesses) -> None:
    for _ in range(FREE - 1):
        tried.take("ann", "one")
        tried.take("thief", "one")
        tried.succeeded("thief", "one")
    tried.take("bob", "one")
    assert tried.take("ann", "one") == 5


def test_a_try_that_was_not_verified_is_taken_back(tried: Guesses) -> None:
    for _ in range(FREE * 2):
        assert tried.take("ann", "one") == 0
        tried.store.write(guesses.take_back, of("ann", "one"), tried.now)


def test_counts_begin_again_after_an_hour_or_if_the_clock_is_set_back(tried: Guesses) -> None:
    for change in (FORGOTTEN + 1, -FORGOTTEN - 1):
        assert [tried.take("ann", "one") for _ in range(FREE)] == [0] * FREE
        assert tried.take("ann", "one") == 5
        tried.now += change


def test_nobody_is_counted_who_is_not_known(tried: Guesses) -> None:
    assert [tried.take("", "") for _ in range(FREE * 2)] == [0] * FREE * 2
    assert tried.rows() == 0


def test_of_tries_at_the_same_moment_no_more_than_five_are_accepted(store: Driven) -> None:
    def take(number: int) -> float:
        return float(store.write(guesses.take, of("ann", f"place {number}"), 1_000.0))

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(take, range(24))).count(0) == FREE


def test_rows_are_removed_when_they_no_longer_count(tried: Guesses, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        tried.take(f"user{number}", f"place {number}")
    tried.now += FORGOTTEN + 1
    monkeypatch.setattr(guesses, "EXPIRED", 30)
    tried.take("ann", "one")
    assert tried.rows() == 40 - 30 + 2
    tried.take("ann", "one")
    assert tried.rows() == 2
