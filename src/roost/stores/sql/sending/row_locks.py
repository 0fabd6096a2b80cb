"""Rows that attempts and their effects have to lock first: see `stores.locking`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from roost.core.brain_data.memories import Remember
from roost.core.envelopes.effects import Effect, Publish, SendMail, messages, urgent_mail
from roost.core.journal.steps import Attempt
from roost.ports import Tx
from roost.stores import locking


def claim_lock(attempt: Attempt) -> locking.RowLock:
    """Return the lock of the row that proves the claim of an attempt."""
    return locking.talk(attempt.holder) if attempt.is_talk else locking.agent(attempt.holder)


def locks_of(effects: Iterable[Effect]) -> Iterator[locking.RowLock]:
    """Return the locks: of agents whose timers or memories change, and of users whose events are published."""
    for effect in effects:
        if type(effect) is Remember:
            yield locking.agent(effect.address)
        elif type(effect) is SendMail:
            yield from _locks_of_mail(effect)
        elif type(effect) is Publish:
            yield locking.user(effect.user_id, shared=True)
        else:
            yield from (locking.agent(e.address) for e in messages(effect) if e.expires is not None)


def by_effect(tx: Tx, effect: Effect, now: float = 0.0) -> locking.Rows:
    return locks_of((effect,))


def _locks_of_mail(mail: SendMail) -> Iterator[locking.RowLock]:
    if mail.envelope is not None:
        yield locking.agent(mail.envelope.address)
    if (event := urgent_mail(mail)) is not None:
        yield locking.user(event.user_id, shared=True)
