"""Faults of a simulation: their probabilities, and the adapters that inject them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

from roost.core.envelopes.effects import Effect
from roost.core.envelopes.envelope import Envelope
from roost.core.envelopes.requests import Answered
from roost.core.runs import Closing
from roost.core.talks.runs import StopReason
from roost.hosts.simulated import Crash, SimulatedHost
from roost.hosts.virtual_time import VirtualClock
from roost.runtime.ports.notifier import Notifier

MOST_CRASHES = 8
"""Maximum number of crashes, so that a simulation ends."""
LATEST = 3.0
"""Maximum delay in seconds."""
FURTHEST = 60.0
"""Maximum seconds by which the clock is set forward or back."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Faults:
    """Chances from 0 to 1; none by default. Switch off one of many with `dataclasses.replace(faults, crash=0)`."""

    handover_lost: float = 0.0
    """A committed envelope is not delivered to its agent or talk."""
    handover_doubled: float = 0.0
    handover_delayed: float = 0.0
    handover_reordered: float = 0.0
    """Envelopes of one delivery arrive in another order."""
    bell_lost: float = 0.0
    """A notification is lost: a timer was set, an agent has work, a task is over."""
    bell_doubled: float = 0.0
    bell_delayed: float = 0.0
    post_lost: float = 0.0
    """A post in a meeting does not reach another participant."""
    commit_failed: float = 0.0
    """A commit fails."""
    commit_unknown: float = 0.0
    """The result of a commit is unknown."""
    crash: float = 0.0
    """The power fails, at any await and any step of the store."""
    loop_frozen: float = 0.0
    """A loop is frozen for a while; rate per second."""
    clock_jump: float = 0.0
    """The clock is set forward or back; rate per second."""

    def __post_init__(self) -> None:
        for name, chance in self.chances.items():
            if not 0 <= chance <= 1:
                raise ValueError(f"{name} must be a chance from 0 to 1, not {chance!r}")

    @classmethod
    def all(cls) -> Faults:
        return cls(**_USUAL)

    @classmethod
    def some(cls, seed: int) -> Faults:
        """Return a random half of the faults, by the seed: one fault may hide the effects of another."""
        dice = random.Random(f"which faults {seed}")
        return cls(**{name: chance for name, chance in _USUAL.items() if dice.random() < 0.5})

    @property
    def chances(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return f"Faults({', '.join(f'{name}={chance!r}' for name, chance in self.chances.items() if chance)})"


_USUAL = {
    "handover_lost": 0.05,
    "handover_doubled": 0.05,
    "handover_delayed": 0.1,
    "handover_reordered": 0.2,
    "bell_lost": 0.1,
    "bell_doubled": 0.1,
    "bell_delayed": 0.1,
    "commit_failed": 0.05,
    "commit_unknown": 0.05,
    "crash": 0.001,
    "loop_frozen": 0.1,
    "clock_jump": 0.1,
    "post_lost": 0.1,
}


class Chaos:
    """Source of faults for a whole simulation, across crashes."""

    def __init__(self, faults: Faults, seed: int, clock: VirtualClock) -> None:
        self.faults = faults
        self.happened: Counter[str] = Counter()
        """Number of injected faults by name."""
        self._chances = faults.chances
        self._dice = random.Random(f"faults {seed}")
        self._clock = clock
        self._host: SimulatedHost | None = None
        self.cuts: set[tuple[str, str]] = set()
        """Pairs of sender and address that cannot communicate."""
        self._crash_in = self._next("crash")
        self._times = {name: self._next(name) for name in ("loop_frozen", "clock_jump")}

    def end(self) -> None:
        """Stop injecting faults."""
        self._chances = dict.fromkeys(self._chances, 0.0)
        self._times = {}
        self._crash_in = None

    def attach(self, host: SimulatedHost) -> None:
        """Inject crashes, frozen loops and clock jumps on this host, and delays by its clock."""
        self._host = host
        host.tick, host.moved = self._tick, self._moved

    def notifier(self, inner: Notifier) -> Notifier:
        """Wrap the notifier of a Roost: calls are lost, doubled and delayed."""
        return UnreliableNotifier(self, inner)

    def commit(self) -> str | None:
        """Return the fault of a commit: `failed`, or `done` or `undone` with an unknown outcome; None: no fault."""
        if self._happens("commit_failed"):
            return "failed"
        if self._happens("commit_unknown"):
            return self._dice.choice(("done", "undone"))
        return None

    def post(self, sender: str, address: str) -> bool:
        """Return True if a post of a meeting is lost."""
        return self.is_cut(sender, address) or self._happens("post_lost")

    def is_cut(self, sender: str, address: str) -> bool:
        """Return True if this sender cannot reach the agent with this key."""
        return (sender, f"agent:{address}") in self.cuts

    def unreliably(self, kind: str, act: Callable[..., None], *args: Any) -> None:
        """Call a function once, twice, later or not at all."""
        if self.cuts and kind == "handover" and len(args) == 1:
            args = (tuple(e for e in args[0] if not self.is_cut(e.sender, e.address)),)
        if self._happens(f"{kind}_lost"):
            return
        if len(args) == 1 and isinstance(args[0], tuple) and len(args[0]) > 1:
            args = (self._reordered(args[0]),)
        self._sooner_or_later(kind, act, *args)
        if self._happens(f"{kind}_doubled"):
            self._sooner_or_later(kind, act, *args)

    # --- inside ----------------------------------------------------------------------------------

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
        """Return the time of the next event of a rate."""
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


class UnreliableNotifier:
    """Notifier that loses, doubles, delays and reorders calls before they reach the one it wraps.

    Stops only come twice: a person who stops a run is promised that it ends soon.
    """

    def __init__(self, chaos: Chaos, inner: Notifier) -> None:
        self._chaos = chaos
        self._inner = inner
        self.look_elsewhere, self.look_where_known = inner.look_elsewhere, inner.look_where_known
        self.agent_changed, self.approval_decided = inner.agent_changed, inner.approval_decided
        self.awaits, self.deliver_elsewhere = inner.awaits, inner.deliver_elsewhere

    def deliver(self, envelopes: tuple[Envelope, ...]) -> None:
        self._chaos.unreliably("handover", self._inner.deliver, envelopes)

    def deliver_talk(self, talk_id: str, user_id: str, envelope: Envelope | None, agent: str = "") -> None:
        self._chaos.unreliably("handover", self._inner.deliver_talk, talk_id, user_id, envelope, agent)

    def stop_talk(self, talk_id: str, why: StopReason, requested: float) -> None:
        self._inner.stop_talk(talk_id, why, requested)
        self._inner.stop_talk(talk_id, why, requested)

    def stop_agent(self, address: str) -> None:
        self._inner.stop_agent(address)
        self._inner.stop_agent(address)

    def cancel_task(self, address: str, task_id: str) -> None:
        self._inner.cancel_task(address, task_id)
        self._inner.cancel_task(address, task_id)

    def look(self, address: str) -> None:
        self._chaos.unreliably("bell", self._inner.look, address)

    def wake_at(self, due: float) -> None:
        self._chaos.unreliably("bell", self._inner.wake_at, due)

    def answered(self, answered: Answered) -> None:
        self._chaos.unreliably("bell", self._inner.answered, answered)

    def ended(self, closing: Closing) -> None:
        self._chaos.unreliably("bell", self._inner.ended, closing)

    def changed(self, task_id: str) -> None:
        self._chaos.unreliably("bell", self._inner.changed, task_id)

    def missed(self, effects: Iterable[Effect]) -> None:
        self._inner.missed(effects)

    def withdraw(self, asked: tuple[tuple[str, str], ...]) -> None:
        self._inner.withdraw(asked)
