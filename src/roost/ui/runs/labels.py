"""Words and numbers of runs, as pages show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from roost.core.failures.faults import Fault, sentence
from roost.core.journal.run_history import Run
from roost.core.journal.steps import StepOutcome
from roost.core.limits.usage import Usage
from roost.core.runs import RunOutcome
from roost.ui.design import components

OUTCOMES = {
    RunOutcome.DONE: ("Done", "good"),
    RunOutcome.FAILED: ("Failed", "bad"),
    RunOutcome.STOPPED: ("Stopped", "quiet"),
    RunOutcome.WAITING: ("Waited for approval", "waiting"),
    RunOutcome.LOST: ("Lost in a crash", "bad"),
    RunOutcome.REPEATED: ("Repeated", "quiet"),
}
"""Label and tone of each outcome of a run."""
STEP_OUTCOMES = {
    StepOutcome.BEGUN: ("Result unknown", "waiting"),
    StepOutcome.ASKED: ("Waiting for approval", "waiting"),
    StepOutcome.DONE: ("Done", "good"),
    StepOutcome.FAILED: ("Failed", "bad"),
    StepOutcome.INTERRUPTED: ("Interrupted", "quiet"),
    StepOutcome.RETRIED: ("Failed, repeated by the next attempt", "bad"),
    StepOutcome.STALE: ("Repeated by the next attempt", "quiet"),
}
STEP_KINDS = {"model": "Model call", "tool": "Tool", "step": "Step", "ask": "Question to"}


def outcome(run: Run) -> tuple[str, str]:
    """Return the label and the tone of the outcome of a run; a newer program may store others."""
    return (
        OUTCOMES.get(RunOutcome(run.outcome), (run.outcome, ""))
        if run.outcome in set(RunOutcome)
        else (run.outcome, "")
    )


def duration(start: datetime, end: datetime) -> str:
    return length(max(end - start, timedelta()).total_seconds())


def length(seconds: float) -> str:
    """Return a number of seconds for people: `340 ms`, `2.4 s`, `3 min 5 s`, `2 h 10 min`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(time: datetime) -> str:
    """Format a time to the second, in the browser's time zone; with its date unless it is today."""
    zone = components.browser_zone()
    local = time.astimezone(zone)
    return f"{local:%H:%M:%S}" if local.date() == datetime.now(zone).date() else f"{local.day} {local:%b, %H:%M:%S}"


def tokens(usage: Usage) -> str:
    return f"{usage.tokens:,}" if usage.tokens else ""


def cost(usage: Usage) -> str:
    """Return the cost in US dollars; empty if it is not known."""
    if usage.cost is None or not usage.tokens:
        return ""
    return f"${usage.cost:.4f}" if usage.cost < 1 else f"${usage.cost:,.2f}"


def error(run: Run) -> str:
    """Return the sentence about the failure of a run, with the reference to the log; empty if it has not failed."""
    if run.fault is None:
        return ""
    return sentence(Fault(run.fault), run.run_id) if run.fault in set(Fault) else run.fault


def text(value: Any) -> str:
    """Return a recorded value as text: JSON with indentation, a text as it is."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)


def step_tokens(result: Any) -> str:
    """Return the tokens of a model call, if its recorded answer has them: `310 in, 25 out`."""
    used = (result.get("usage") or result.get("usage_metadata")) if isinstance(result, Mapping) else None
    if not isinstance(used, Mapping):
        return ""
    for given, written in (("input_tokens", "output_tokens"), ("prompt_token_count", "candidates_token_count")):
        with suppress(TypeError, ValueError):
            if used.get(given) or used.get(written):
                return f"{int(used.get(given) or 0):,} in, {int(used.get(written) or 0):,} out"
    return ""
