"""Wake conditions of a sleeping agent: a time, events, mail, a low load, any or all of them.

A condition is a tree. Its leaves latch: once the time has passed, or the event or mail has arrived, that leaf stays
met. Load does not latch. A function that changes nothing returns the same object, so that the caller sees that there
is nothing to write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeAlias

from roost.core.values import checks
from roost.core.values.patterns import check_name, check_pattern, matches
from roost.core.values.priority import Priority
from roost.core.values.times import timestamp
from roost.errors import Invalid

DEEPEST = 8
MOST_LEAVES = 100
MOST_AWAKE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class At:
    """Time, in seconds since 1970."""

    time: float
    met: bool = False


@dataclass(frozen=True, slots=True)
class OnEvent:
    """Event whose name matches the pattern. `met` is the name of the first one."""

    pattern: str
    met: str = ""


@dataclass(frozen=True, slots=True)
class OnMail:
    """Mail of at least this priority, to the agent."""

    priority: Priority
    met: bool = False


@dataclass(frozen=True, slots=True)
class OnLoad:
    """Load below all given marks: the share of the CPUs in use, the number of awake agents."""

    cpu: float | None = None
    awake: int | None = None


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Conditions of which one must be met."""

    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class AllOf:
    """Conditions that must all be met."""

    conditions: tuple[Condition, ...]


Leaf: TypeAlias = At | OnEvent | OnMail | OnLoad
Condition: TypeAlias = Leaf | AnyOf | AllOf


def any_of(*conditions: Condition) -> Condition:
    return check(AnyOf(conditions))


def all_of(*conditions: Condition) -> Condition:
    return check(AllOf(conditions))


def event(pattern: str) -> Condition:
    return OnEvent(check_pattern(pattern))


def mail(priority: str = Priority.NORMAL) -> Condition:
    """Return a condition: mail of at least this priority."""
    return OnMail(checks.choice(priority, "the priority of mail", Priority))


def at(moment: datetime | float) -> Condition:
    """Return a condition: this time, an aware datetime or seconds since 1970."""
    return At(timestamp(moment, "the time to wake at"))


def load_below(*, cpu: float | None = None, awake: int | None = None) -> Condition:
    """Return a condition on the load of this machine: `cpu`, a share from 0 to 1, and `awake`, a number of agents."""
    if cpu is None and awake is None:
        raise Invalid("load_below needs cpu, awake or both")
    if cpu is not None and not _is_share(cpu):
        raise Invalid(f"cpu must be a share above 0 and up to 1, such as 0.5, not {checks.shown(cpu)}")
    if awake is not None:
        checks.count(awake, "awake", least=1, most=MOST_AWAKE)
    return OnLoad(None if cpu is None else float(cpu), awake)


def wanted(
    now: float,
    seconds: float | None,
    until: datetime | float | None,
    wake_on: Condition | None,
    default: Condition,
) -> Condition:
    """Combine the arguments of a sleep into one condition; `default` adds what else may wake the agent."""
    if seconds is not None and until is not None:
        raise Invalid("give the seconds to sleep for or the time to sleep until, not both")
    if seconds is not None:
        until = now + checks.seconds(seconds, "the seconds to sleep for")
    if wake_on is not None:
        check(wake_on)
    if until is None:
        return wake_on or default
    return any_of(at(until), wake_on or default)


def check(condition: object) -> Condition:
    """Return the condition. Raises Invalid if it is none, or too large to store and evaluate."""
    leaves, waiting = 0, [(condition, 0)]
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, AnyOf | AllOf):
            name = "any_of" if isinstance(part, AnyOf) else "all_of"
            if not part.conditions:
                raise Invalid(f"{name} needs at least one condition")
            if depth == DEEPEST:
                raise Invalid(f"a wake condition may be nested at most {DEEPEST} levels deep")
            waiting += [(inner, depth + 1) for inner in part.conditions]
        elif isinstance(part, Leaf):
            leaves += 1
        else:
            raise Invalid(
                f"a wake condition is expected, such as event('data_ready') or mail('high'), not {checks.shown(part)}"
            )
        if leaves > MOST_LEAVES:
            raise Invalid(f"a wake condition may have at most {MOST_LEAVES} parts")
    return condition  # type: ignore[return-value] # Every part of it is checked.


def heard(condition: Condition, name: str) -> Condition:
    """Return the condition after an event of this name."""
    check_name(name)

    def latch(leaf: Leaf) -> Leaf:
        if isinstance(leaf, OnEvent) and not leaf.met and matches(leaf.pattern, name):
            return replace(leaf, met=name)
        return leaf

    return _latched(condition, latch)


def got_mail(condition: Condition, priority: str) -> Condition:
    """Return the condition after mail of this priority."""
    level = checks.choice(priority, "the priority of mail", Priority).level

    def latch(leaf: Leaf) -> Leaf:
        if isinstance(leaf, OnMail) and not leaf.met and leaf.priority.level <= level:
            return replace(leaf, met=True)
        return leaf

    return _latched(condition, latch)


def passed(condition: Condition, now: float) -> Condition:
    """Return the condition at this time."""

    def latch(leaf: Leaf) -> Leaf:
        if isinstance(leaf, At) and not leaf.met and leaf.time <= now:
            return replace(leaf, met=True)
        return leaf

    return _latched(condition, latch)


def sooner(condition: Condition, seconds: float, now: float) -> Condition:
    """Return the condition with all future times moved ahead by `seconds`."""

    def move(leaf: Leaf) -> Leaf:
        if isinstance(leaf, At) and not leaf.met and leaf.time > now:
            return replace(leaf, time=max(now, leaf.time - seconds))
        return leaf

    return _latched(condition, move)


def is_met(condition: Condition, *, cpu: float | None = None, awake: int | None = None) -> bool:
    """Return whether the agent wakes. An unknown load is not low."""
    if isinstance(condition, AnyOf):
        return any(is_met(inner, cpu=cpu, awake=awake) for inner in condition.conditions)
    if isinstance(condition, AllOf):
        return all(is_met(inner, cpu=cpu, awake=awake) for inner in condition.conditions)
    if isinstance(condition, OnLoad):
        return _undercut(condition.cpu, cpu) and _undercut(condition.awake, awake)
    return bool(condition.met)


def reason(condition: Condition, *, cpu: float | None = None, awake: int | None = None) -> str:
    """Return why it is met, in words: the first met part of `any_of`, all parts of `all_of`; empty if it is not met."""
    if not is_met(condition, cpu=cpu, awake=awake):
        return ""
    if isinstance(condition, AnyOf):
        return next(why for inner in condition.conditions if (why := reason(inner, cpu=cpu, awake=awake)))
    if isinstance(condition, AllOf):
        return " and ".join(reason(inner, cpu=cpu, awake=awake) for inner in condition.conditions)
    if isinstance(condition, OnEvent):
        by_pattern = f" ({condition.pattern})" if condition.met != condition.pattern else ""
        return f"event {condition.met}{by_pattern}"
    if isinstance(condition, OnMail):
        return f"mail {condition.priority}"
    return "time" if isinstance(condition, At) else "load"


def described(condition: Condition, time: Callable[[float], str], around: str = "") -> str:
    """Return the unmet parts in words, with times formatted by `time`; empty if all are met.

    `around`: the operator on both sides of it.
    """
    if is_met(condition):
        return ""
    if isinstance(condition, AnyOf | AllOf):
        left = [inner for inner in condition.conditions if not is_met(inner)]
        word = around if len(left) == 1 else "or" if isinstance(condition, AnyOf) else "and"
        words = f" {word} ".join(described(inner, time, word) for inner in left)
        return words if word == around or not around else f"({words})"
    if isinstance(condition, At):
        return time(condition.time)
    if isinstance(condition, OnEvent):
        return f"event {condition.pattern}"
    if isinstance(condition, OnMail):
        return "mail" if condition.priority is Priority.LOW else f"mail of at least {condition.priority}"
    cpu = f"load below {condition.cpu:g}" if condition.cpu is not None else ""
    awake = f"fewer than {condition.awake:,} awake" if condition.awake is not None else ""
    return " with ".join(filter(None, (cpu, awake)))


def patterns(condition: Condition) -> tuple[str, ...]:
    """Return the distinct patterns of the events that are not met."""
    waited = (leaf.pattern for leaf in _leaves(condition) if isinstance(leaf, OnEvent) and not leaf.met)
    return tuple(dict.fromkeys(waited))


def next_time(condition: Condition) -> float | None:
    """Return the earliest time that is not met."""
    waited = (leaf.time for leaf in _leaves(condition) if isinstance(leaf, At) and not leaf.met)
    return min(waited, default=None)


def with_time(condition: Condition, time: float | None, otherwise: Condition) -> Condition:
    """Replace all its times by this one. Without a time and other parts, return `otherwise`."""
    rest = _without_times(condition)
    if time is None:
        return rest or otherwise
    return AnyOf((At(time), rest)) if rest is not None else At(time)


def _without_times(condition: Condition) -> Condition | None:
    if isinstance(condition, At):
        return None
    if not isinstance(condition, AnyOf | AllOf):
        return condition
    left = tuple(inner for part in condition.conditions if (inner := _without_times(part)) is not None)
    if not left:
        return None
    return left[0] if len(left) == 1 else replace(condition, conditions=left)


def wants_load(condition: Condition) -> bool:
    """Return whether it must be polled: no notification reports that the load has fallen."""
    return any(isinstance(leaf, OnLoad) for leaf in _leaves(condition))


def to_json(condition: Condition) -> str:
    return json.dumps(_plain(condition), ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def from_json(text: str) -> Condition:
    """Read the output of `to_json`. Raises Invalid for anything else."""
    try:
        return check(_condition(json.loads(text)))
    except (ValueError, TypeError, RecursionError):
        raise Invalid(f"a wake condition cannot be read: {checks.shown(text)}") from None


def _latched(condition: Condition, latch: Callable[[Leaf], Leaf]) -> Condition:
    if not isinstance(condition, AnyOf | AllOf):
        return latch(condition)
    after = tuple(_latched(inner, latch) for inner in condition.conditions)
    changed = any(new is not old for new, old in zip(after, condition.conditions, strict=True))
    return replace(condition, conditions=after) if changed else condition


def _leaves(condition: Condition) -> Iterator[Leaf]:
    if isinstance(condition, AnyOf | AllOf):
        for inner in condition.conditions:
            yield from _leaves(inner)
    else:
        yield condition


def _is_share(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 1


def _undercut(mark: float | None, value: float | None) -> bool:
    return mark is None or (value is not None and value < mark)


def _plain(condition: Condition) -> dict[str, Any]:
    if isinstance(condition, AnyOf):
        return {"any": [_plain(inner) for inner in condition.conditions]}
    if isinstance(condition, AllOf):
        return {"all": [_plain(inner) for inner in condition.conditions]}
    if isinstance(condition, OnLoad):
        return {"load": {"cpu": condition.cpu, "awake": condition.awake}}
    met = {"met": condition.met} if condition.met else {}
    if isinstance(condition, At):
        return {"at": condition.time, **met}
    if isinstance(condition, OnEvent):
        return {"event": condition.pattern, **met}
    return {"mail": condition.priority, **met}


def _condition(plain: Any, depth: int = 0) -> Condition:
    if not isinstance(plain, dict) or depth > DEEPEST:
        raise ValueError
    match plain:
        case {"any": list(inner), **rest} if not rest:
            return AnyOf(tuple(_condition(part, depth + 1) for part in inner))
        case {"all": list(inner), **rest} if not rest:
            return AllOf(tuple(_condition(part, depth + 1) for part in inner))
        case {"load": {"cpu": cpu, "awake": awake, **more}, **rest} if not rest and not more:
            return load_below(cpu=cpu, awake=awake)
        case {"at": time, **rest} if _at_most_met(rest):
            return At(timestamp(time, "the time to wake at"), bool(rest))
        case {"mail": priority, **rest} if _at_most_met(rest):
            return OnMail(checks.choice(priority, "the priority of mail", Priority), bool(rest))
        case {"event": pattern, "met": met, **rest} if not rest:
            return OnEvent(check_pattern(pattern), check_name(met))
        case {"event": pattern, **rest} if not rest:
            return event(pattern)
    raise ValueError


def _at_most_met(rest: dict[str, Any]) -> bool:
    return not rest or (rest.keys() == {"met"} and rest["met"] is True)
