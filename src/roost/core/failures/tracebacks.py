"""Tracebacks of failed runs: the author's frames, chained exceptions and groups, in a bounded text."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from traceback import FrameSummary, StackSummary, TracebackException
from types import TracebackType

from roost.core.failures.faults import Fault
from roost.core.values import checks
from roost.errors import BrainFailed

MOST = 16_000
"""Characters of a traceback that are kept."""
LONGEST = 200_000
"""Characters that are searched for secrets: of a longer text the middle is left out first."""
SUMMARY = 300
"""Characters of a summary."""
_ROOST = PurePath(__file__).parents[2]
_BRAIN_FAILED = f"{BrainFailed.__module__}.{BrainFailed.__qualname__}: "
_DEFECTS = frozenset({Fault.INTERNAL, Fault.STATE, Fault.UNAWAITED, Fault.BRAIN, Fault.TOOL})
"""Faults that the code of a brain or a tool has."""
_STANDARD = PurePath(traceback.__file__).parent
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_MACHINERY = frozenset({_STANDARD / "asyncio", _STANDARD / "importlib"})
_NOT_ENGINE = frozenset({"brains", "demos", "testing", "tools"})
"""Packages of Roost that hold code like an author's."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception as its author reads it. Secrets are not removed yet."""

    text: str
    """The traceback, at most LONGEST characters."""
    summary: str
    """One line: the type, the message, and the place."""


def describe(error: BaseException) -> Failure:
    """Format an exception without the engine's frames. Never raises: exceptions can be arbitrary objects."""
    try:
        found = TracebackException.from_exception(error, lookup_lines=False, compact=True)
        _trim(list(_chained(found)))
        return Failure(cut(checks.clean("".join(found.format())).rstrip("\n"), LONGEST), _summary(found))
    except Exception:
        return Failure(type(error).__name__, type(error).__name__)


def cut(text: str, most: int) -> str:
    """Shorten a text to `most` characters. What is left out is in the first half: the end of a traceback says most."""
    if len(text) <= most:
        return text
    mark = f"\n… {len(text) - most:,} characters left out …\n"
    head = most // 4
    return text[:head] + mark + text[len(text) - (most - head - len(mark)) :]


def is_explained(fault: str | None, traceback: str) -> bool:
    """Return True if the sentence of a fault says all there is to do, so that no code has to be looked at."""
    return fault not in _DEFECTS and _BRAIN_FAILED in traceback


def suspended_at(stream: object) -> TracebackType | None:
    """Return the place where a generator has yielded, as a traceback; of one that delegates, the innermost."""
    frame = None
    while (found := getattr(stream, "gi_frame", None) or getattr(stream, "ag_frame", None)) is not None:
        frame, stream = found, getattr(stream, "gi_yieldfrom", None)
    return None if frame is None else TracebackType(None, frame, frame.f_lasti, frame.f_lineno)


def _chained(found: TracebackException) -> Iterator[TracebackException]:
    """Yield it with its causes and contexts, and with the members of groups."""
    waiting: list[TracebackException | None] = [found]
    while waiting:
        if (exception := waiting.pop()) is not None:
            yield exception
            waiting += [*(exception.exceptions or ()), exception.__context__, exception.__cause__]


def _trim(chain: list[TracebackException]) -> None:
    """Keep the frames outside of Roost; where there are none, those of its brains and tools; else all of them.

    Of those, what comes before the author's code is left out (a framework that called it), and so are the frames of
    `asyncio` and `importlib`.
    """
    kept = [
        [frame for frame in exception.stack if _package(frame) is None and not _is_machinery(frame)]
        for exception in chain
    ]
    if not any(kept):
        kept = [[frame for frame in exception.stack if _package(frame) in _NOT_ENGINE] for exception in chain]
    if not any(kept):
        kept = [list(exception.stack) for exception in chain]
    for exception, frames in zip(chain, kept, strict=True):
        # Without a stack the line "Traceback (most recent call last)" is left out, too.
        exception.stack = StackSummary.from_list(_from_author(frames)) if frames else None  # type: ignore[assignment]


def _from_author(frames: list[FrameSummary]) -> list[FrameSummary]:
    """Return the frames from the first one that is in no library; all of them if there is none."""
    first = next((number for number, frame in enumerate(frames) if not _is_library(frame)), 0)
    return frames[first:]


def _is_library(frame: FrameSummary) -> bool:
    path = PurePath(frame.filename)
    return path.is_relative_to(_STANDARD) or not _INSTALLED.isdisjoint(path.parts) or path.is_relative_to(_ROOST)


def _package(frame: FrameSummary) -> str | None:
    """Return the package of Roost that the code of a frame is in; None if it is in none."""
    path = PurePath(frame.filename)
    return path.relative_to(_ROOST).parts[0] if path.is_relative_to(_ROOST) else None


def _is_machinery(frame: FrameSummary) -> bool:
    return PurePath(frame.filename).parent in _MACHINERY or frame.filename.startswith("<frozen importlib.")


def _summary(found: TracebackException) -> str:
    said = " ".join(checks.clean("".join(found.format_exception_only())).split())
    last = next((exception.stack[-1] for exception in _chained(found) if exception.stack), None)
    place = "" if last is None else f" at {PurePath(last.filename).name}:{last.lineno}"
    if place[4:] in said:
        return said[:SUMMARY]
    return said + place if len(said) + len(place) <= SUMMARY else f"{said[: SUMMARY - len(place) - 1]}…{place}"
