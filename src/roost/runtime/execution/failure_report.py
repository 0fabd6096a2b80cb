"""Reports of failed runs: the log record, the sentence for users, and the traceback for the author of the brain."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from roost.core.failures import faults, tracebacks
from roost.core.values.ids import reference
from roost.errors import BrainFailed
from roost.runtime.context import RuntimeContext

log = logging.getLogger("roost.run")


@dataclass(frozen=True, slots=True)
class Report:
    """Failure as it is stored with its run."""

    fault: faults.Fault
    sentence: str
    """Sentence for users."""
    traceback: str
    """Traceback for the author of the brain."""


def excerpt_of(context: RuntimeContext, text: str) -> str:
    """Return the start of a text for the log, redacted before it is cut: half a secret is not recognised."""
    return context.redactor.clean(text[:10_000])[:80]


def report(error: BaseException, run_id: str, about: Mapping[str, str], clean: Callable[[str], str]) -> Report:
    """Log a failure and return its report; `clean` removes secrets."""
    fault, failure = faults.sort(error), tracebacks.describe(error)
    traceback = tracebacks.cut(clean(failure.text), tracebacks.MOST)
    log.error(
        "a run has failed",
        exc_info=error,
        extra={
            **about,
            "run": run_id,
            "reference": reference(run_id),
            "error_type": type(error).__name__,
            "error": failure.summary,
            "fault": str(fault),
            "traceback": "" if tracebacks.is_explained(fault, traceback) else traceback,
        },
    )
    advice = error.advice if isinstance(error, BrainFailed) else None
    return Report(fault, clean(faults.sentence(fault, run_id, advice, faults.detail(error))), traceback)
