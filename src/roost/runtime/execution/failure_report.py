"""Reports of failed runs: the log record, the sentence for users, and the traceback for the author of the brain."""

from __future__ import annotations

import logging
from collections.abc import Mapping
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


def report(context: RuntimeContext, error: BaseException, run_id: str, text: str, about: Mapping[str, str]) -> Report:
    """Log a failure and return its report, both without secrets. `text` is what the run should have answered."""
    clean = context.redactor.clean
    excerpt = clean(text[:10_000])[:80]  # redacted before it is cut: half a secret is not recognised
    fault, failure = faults.sort(error), tracebacks.describe(error)
    traceback = tracebacks.cut(clean(failure.text), tracebacks.MOST)
    log.error(
        "a run has failed",
        exc_info=error,
        extra={
            **about,
            "excerpt": excerpt,
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
