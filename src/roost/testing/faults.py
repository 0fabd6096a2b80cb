"""What goes wrong in a simulation, how often, and where it is brought about."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from roost.core.envelopes import Envelope
from roost.hosts.simulated import Crash, SimulatedHost
from roost.hosts.virtual import VirtualClock
from roost.runtime.roost import Roost

MOST_CRASHES = 8
"""Enough is enough: then the power stays on, so that a simulation ends."""
LATEST = 3.0
"""Seconds by which something is late at the most."""
FURTHEST = 60.0
"""Seconds by which people's clocks are set forward or back at the most."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Faults:
    """Chances from 0 to 1; none by default. Switch off one of many with `dataclasses.replace(faults, crash=0)`."""

    handover_lost: float = 0.0
    """What was committed is not handed over to the agent, or talk, that it is for."""
    handover_doubled: float = 0.0
    handover_delayed: float = 0.0
    handover_reordered: float = 0.0
    """What is handed over together comes in another order."""
    bell_lost: float = 0.0
    """A timer is set, an agent to be looked at, a task over: who should be told is not."""
    bell_doubled: float = 0.0
    bell_delayed: float = 0.0
    post_lost: float = 0.0
    """What one says in a meeting does not come into the inbox of another."""
    commit_failed: float = 0.0
    """A commit is not done."""
    commit_unknown: float = 0.0
    """A commit is done or not, and the store cannot tell."""
    crash: float = 0.0
    """The power fails, at any await and any step of the store."""
    loop_frozen: float = 0.0
    """A loop does nothing for a while; in each second."""
    clock_jump: float = 0.0
    """People's clocks are set forward or back; in each second."""

    def __post_init__(self) -> None:
        for name, chance in self.chances.items():
            if not 0 <= chance <= 1:
                raise ValueError(f"{name} must be a chance from 0 to 1, not {chance!r}")

    @classmethod
    def all(cls) -> Faults:
        return cls(**_USUAL)

    @classmethod
    def some(cls, seed: int) -> Faults:
        """About half of them, another half for each seed: what hides behind one fault shows without it."""
        dice = random.Random(f"which faults {seed}")
        return cls(**{name: chance for name, chance in _USUAL.items() if dice.random() < 0.5})

    @property
    def chances(self) -> dict[str, float]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    def __repr__(self) -> str:
        return f"Faults({', '.join(f'{name}={chance!r}' for name, chance in self.chances.items() if chance)})"


_USUAL = {
    "handover_lost": 0.05, "handover_doubled": 0.05, "handover_delayed": 0.1, "handover_reordered": 0.2,
    "bell_lost": 0.1, "bell_doubled": 0.1, "bell_delayed": 0.1, "commit_failed": 0.05, "commit_unknown": 0.05,
    "crash": 0.001, "loop_frozen": 0.1, "clock_jump": 0.1,
    "post_lost": 0.1,
}  # fmt: skip


class Chaos:
    """Throws the dice. One for a whole simulation: what happens after a crash is another matter of chance."""

    def __init__(self, faults: Faults, seed: int, clock: VirtualClock) -> None:
        self.faults = faults
        self.happened: Counter[str] = Counter()
        """How often each fault was brought about."""
        self._chances = faults.chances
        self._dice = random.Random(f"faults {seed}")
        self._clock = clock
        self._host: SimulatedHost | None = None
        self._crash_in = self._next("crash")
        self._times = {name: self._next(name) for name in ("loop_frozen", "clock_jump")}

    def end(self) -> None:
        """From now on nothing goes wrong."""
        self._chances = dict.fromkeys(self._chances, 0.0)
        self._times = {}
        self._crash_in = None

    def meddle(self, roost: Roost, host: SimulatedHost) -> None:
        """Put the faults into a Roost that was just made, in place of what they are faults of."""
        self._host = host
        hall = roost.hall
        self._replace(hall, "deliver", "handover")
        self._replace(roost.inbox, "deliver", "handover")
        for name in ("look", "ring", "answer"):
            self._replace(hall, name, "bell")
        for name in ("done", "tell"):
            self._replace(hall.ends, name, "bell")
        host.tick, host.moved = self._tick, self._moved

    def commit(self) -> str | None:
        """What becomes of it: `failed`, or, without anyone being told which, `done` or `undone`; None: all is well."""
        if self._happens("commit_failed"):
            return "failed"
        if self._happens("commit_unknown"):
            return self._dice.choice(("done", "undone"))
        return None

    def post(self) -> bool:
        """Whether what is said to somebody in a meeting is lost."""
        return self._happens("post_lost")

    # --- inside ----------------------------------------------------------------------------------

    def _replace(self, whose: object, name: str, kind: str) -> None:
        setattr(whose, name, partial(self._unreliably, kind, getattr(whose, name)))

    def _unreliably(self, kind: str, act: Callable[..., None], *args: Any) -> None:
        if self._happens(f"{kind}_lost"):
            return
        if len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) > 1:
            args = (self._reordered(args[0]),)
        self._sooner_or_later(kind, act, *args)
        if self._happens(f"{kind}_doubled"):
            self._sooner_or_later(kind, act, *args)

    def _sooner_or_later(self, kind: str, act: Callable[..., None], *args: Any) -> None:
        if self._happens(f"{kind}_delayed"):
            assert self._host is not None
            self._host.later(self._dice.uniform(0.0, LATEST), partial(act, *args))
        else:
            act(*args)

    def _reordered(self, envelopes: tuple[Envelope, ...]) -> tuple[Envelope, ...]:
        if not self._happens("handover_reordered"):
            return envelopes
        return tuple(self._dice.sample(envelopes, len(envelopes)))

    def _happens(self, name: str) -> bool:
        chance = self._chances[name]
        if not chance or self._dice.random() >= chance:
            return False
        self.happened[name] += 1
        return True

    def _next(self, name: str) -> float | None:
        """When something of a rate happens the next time, from now on."""
        rate = self._chances[name]
        return self._dice.expovariate(rate) if rate else None

    def _tick(self) -> None:
        if self._crash_in is None:
            return
        self._crash_in -= 1
        if self._crash_in <= 0:
            self.happened["crash"] += 1
            self._crash_in = self._next("crash") if self.happened["crash"] < MOST_CRASHES else None
            raise Crash

    def _moved(self) -> None:
        now = self._clock.monotonic()
        for name, due in self._times.items():
            if due is not None and due <= now:
                self.happened[name] += 1
                self._times[name] = now + (self._next(name) or 0.0)
                self._bring_about(name)

    def _bring_about(self, name: str) -> None:
        assert self._host is not None
        if name == "clock_jump":
            self._clock.shift += self._dice.uniform(-FURTHEST, FURTHEST)
        elif loops := self._host.loops:
            self._dice.choice(loops).freeze(self._dice.uniform(0.0, LATEST))
