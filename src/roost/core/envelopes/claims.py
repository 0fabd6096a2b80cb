"""Claims: work handed to an agent when it is activated."""

from __future__ import annotations

from roost.core.envelopes.envelope import Envelope
from roost.core.values.records import record


@record(frozen=True, slots=True)
class ClaimedWork:
    """Work claimed for an agent when it is activated. `woken`: why it woke, if it slept."""

    address: str
    found: bool
    ready: bool
    """True if it may work now: it exists and is not asleep, stopped or paused."""
    config: str = ""
    epoch: int = 0
    turn_state: str | None = None
    errors: int = 0
    envelopes: tuple[Envelope, ...] = ()
    talks: tuple[tuple[str, str], ...] = ()
    more: int = 0
    """Number of further envelopes that were not claimed."""
    woken: str | None = None
    is_new: bool = False
    """True if the previous owner has lost it."""
    owner: str = ""
    """The other node of the cluster that the agent belongs to: then nothing is claimed."""
    missing: str = ""
    """Its profile, if that is unknown here: then nothing is claimed, and its talks report that."""

    @property
    def has_work(self) -> bool:
        return bool(self.envelopes or self.talks)
