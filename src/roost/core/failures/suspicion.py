"""Suspicion: envelopes that may have crashed the process, and the steps towards running them in isolation.

A crash alone counts no attempt. Envelopes that may have been running become suspects and run again at once. A suspect
that is lost again is quarantined: it runs while nothing else in quarantine does, and its start is written first. Only
a crash in quarantine counts as an attempt.
"""

from __future__ import annotations

from enum import IntEnum


class Suspicion(IntEnum):
    """Level of suspicion, stored with each envelope. Any attempt that settles clears it."""

    NONE = 0
    SUSPECT = 1
    """May have been running when a process crashed."""
    QUARANTINED = 2
    """May have been running during a second crash: it runs in quarantine."""
    ISOLATED = 3
    """Runs in quarantine now. A crash counts as an attempt."""
    OUTSIDE = 4
    """Left quarantine to wait for an answer. A crash counts as an attempt only if nothing else was in quarantine."""
