"""Failed tries to sign in, counted for all nodes.

An address from which an account was used before has a count of its own for it: others cannot delay its user there. That
it was is known while there is a row of the pair.
"""

from __future__ import annotations

from roost.core.accounts.guesses import (
    FAMILIAR,
    FORGOTTEN,
    LONGEST_FOR_ACCOUNT,
    LONGEST_FOR_ADDRESS,
    Failures,
    Guesser,
)
from roost.ports import Tx

EXPIRED = 100
"""Expired rows that are removed with each try."""
LOCK = 7_061
"""Number of the lock for counting."""


def waiting(tx: Tx, guesser: Guesser, now: float) -> float:
    """Return the seconds until a try is accepted."""
    return max((_read(tx, key).wait(longest, now) for key, longest in _keys(tx, guesser, now)), default=0.0)


def take(tx: Tx, guesser: Guesser, now: float) -> float:
    """Count a try as failed. Count nothing if it comes too early, and return the seconds to wait."""
    _lock(tx)
    _remove_expired(tx, now)
    if (wait := waiting(tx, guesser, now)) > 0:
        return wait
    for key, _ in _keys(tx, guesser, now):
        _put(tx, key, _read(tx, key).at(now).count + 1, now)
    return 0.0


def take_back(tx: Tx, guesser: Guesser, now: float) -> None:
    """Take back the count of a try that was not verified."""
    _lock(tx)
    for key, _ in _keys(tx, guesser, now):
        _put(tx, key, max(0, _read(tx, key).at(now).count - 1), now)


def succeeded(tx: Tx, guesser: Guesser, now: float) -> None:
    """Take back the count of a try. Earlier failures stay: a thief with an account of their own gains nothing."""
    take_back(tx, guesser, now)
    if guesser.pair:
        tx.write(
            "INSERT INTO password_guesses (digest, failures, latest, until) VALUES (:digest, 0, :now, :until)"
            " ON CONFLICT (digest) DO UPDATE SET until = excluded.until",
            {"digest": guesser.pair, "now": now, "until": now + FAMILIAR},
        )


def _keys(tx: Tx, guesser: Guesser, now: float) -> list[tuple[str, float]]:
    """Return what is counted, each with its longest delay."""
    found = [(guesser.address, LONGEST_FOR_ADDRESS)] if guesser.address else []
    if guesser.account:
        sql = "SELECT 1 FROM password_guesses WHERE digest = :digest AND until > :now"
        is_familiar = tx.one(sql, {"digest": guesser.pair, "now": now}) is not None
        found.append((guesser.pair if is_familiar else guesser.account, LONGEST_FOR_ACCOUNT))
    return found


def _read(tx: Tx, digest: str) -> Failures:
    row = tx.one("SELECT failures, latest FROM password_guesses WHERE digest = :digest", {"digest": digest})
    return Failures() if row is None else Failures(*row)


def _put(tx: Tx, digest: str, count: int, now: float) -> None:
    tx.write(
        "INSERT INTO password_guesses (digest, failures, latest, until) VALUES (:digest, :count, :now, :until)"
        " ON CONFLICT (digest) DO UPDATE SET failures = :count, latest = :now,"
        " until = CASE WHEN password_guesses.until > :until THEN password_guesses.until ELSE :until END",
        {"digest": digest, "count": count, "now": now, "until": now + FORGOTTEN},
    )


def _lock(tx: Tx) -> None:
    """Have one transaction of all nodes count at a time; two that lock rows one by one could wait for each other."""
    if tx.for_update:
        tx.read("SELECT pg_advisory_xact_lock(:number)", {"number": LOCK})


def _remove_expired(tx: Tx, now: float) -> None:
    tx.write(
        "DELETE FROM password_guesses WHERE digest IN"
        f" (SELECT digest FROM password_guesses WHERE until < :now ORDER BY until LIMIT {EXPIRED})",
        {"now": now},
    )
