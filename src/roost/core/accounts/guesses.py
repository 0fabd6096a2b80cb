"""Guessing of passwords, slowed per account and per address."""

from __future__ import annotations

from dataclasses import dataclass

FREE = 5
"""Failures before the first delay."""
FIRST_DELAY = 5.0
LONGEST_FOR_ACCOUNT = 60.0
"""Seconds; short, since strangers can cause this delay for anybody."""
LONGEST_FOR_ADDRESS = 900.0
FORGOTTEN = 3600.0
"""Seconds after the last failure at which a count begins again."""
FAMILIAR = 30 * 86_400.0
"""Seconds for which it is known that an account was used from an address."""


@dataclass(frozen=True, slots=True)
class Guesser:
    """Digests of the account and the address of a sign-in attempt. An empty one is unknown, and not counted."""

    account: str
    address: str
    pair: str
    """The account at this address."""


@dataclass(frozen=True, slots=True)
class Failures:
    """Failed tries of an account or an address, and the time of the latest."""

    count: int = 0
    latest: float = 0.0

    def at(self, now: float) -> Failures:
        """Return those that still count. The clock may have been set back since."""
        return self if abs(now - self.latest) <= FORGOTTEN else Failures(0, now)

    def wait(self, longest: float, now: float) -> float:
        """Return the seconds until the next try is accepted; `longest`: the longest delay between two."""
        count = self.at(now).count
        if count < FREE:
            return 0.0
        delay = min(longest, FIRST_DELAY * 2.0 ** min(count - FREE, 20))
        return max(0.0, delay - abs(now - self.latest))
