"""Acting: thinking that has the means to act on the world, and leaves a record of what it did."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from roost.core.steps import Recorded
from roost.runtime.means import Means
from roost.runtime.thinking import Thinking


class Acting(Thinking):
    """What `Run` and `Work` have in common, and a replay has not."""

    _recorded: tuple[Recorded, ...] = ()
    """The steps of earlier tries."""
    _means: Means | None = None

    @property
    def means(self) -> Means:
        """Made when it is first asked for: most turns never act."""
        if self._means is None:
            self._means = self._make_means()
        return self._means

    @abstractmethod
    def _make_means(self) -> Means: ...

    @property
    def is_journaled(self) -> bool:
        """Whether there are steps of it on record."""
        return bool(self._recorded) or (self._means is not None and self._means.is_journaled)

    @property
    def seen(self) -> dict[str, list[Any]]:
        """What it was given in answer to what it did, in order, for a replay."""
        return {} if self._means is None else self._means.seen

    def part(self) -> None:
        """It is over, and nobody asks it any more: in a circle it would wait, with all it has read, for the collector.

        A brain that may still run keeps what it has.
        """
        if self.over and self.error is None and not self.fenced:
            self.turn._hand = self._means = None
