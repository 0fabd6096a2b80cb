"""Faults: classes of background failures, and the sentence that users read about each."""

from __future__ import annotations

from enum import StrEnum

from roost.core.values.ids import reference
from roost.errors import BrainFailed, Busy, Conflict, Forbidden, Invalid, LimitReached, NoAnswer, NotFound, RoostError


class Fault(StrEnum):
    """Class of a failure; stored with the run."""

    PROVIDER = "provider"
    RATE_LIMIT = "rate_limit"
    BAD_KEY = "bad_key"
    NO_KEY = "no_key"
    MODEL = "model"
    EXTRA = "extra"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    RUN_TOKENS = "run_tokens"
    DAY_TOKENS = "day_tokens"
    TIME = "time"
    STEPS = "steps"
    TOOL = "tool"
    BLOCKED = "blocked"
    LOST_WORKER = "lost_worker"
    RESTING = "resting"
    HOPS = "hops"
    BUDGET = "budget"
    NO_ANSWER = "no_answer"
    DECLINED = "declined"
    UNKNOWN_STEP = "unknown_step"
    STATE = "state"
    PROFILE = "profile"
    BRAIN = "brain"
    UNAWAITED = "unawaited"
    INTERNAL = "internal"


_SENTENCES = {
    Fault.PROVIDER: "The model could not be reached or took too long; try again in a moment",
    Fault.RATE_LIMIT: "The model's rate limit is reached; wait a minute and try again",
    Fault.BAD_KEY: "The model's provider refused the key; check it in the settings and try again",
    Fault.NO_KEY: "No key is set for the model's provider; set it (see the guide Configure), and restart Roost",
    Fault.MODEL: "The model of this profile is not available; choose another one in the settings and try again",
    Fault.EXTRA: "This profile needs a package that is not installed; install it, and restart Roost",
    Fault.TOO_LONG: "The answer or the conversation grew too long; ask for something shorter or start a new talk",
    Fault.REFUSED: "The model refused to answer this; rephrase it",
    Fault.RUN_TOKENS: "The answer has used up its tokens; ask for less, or raise tokens_per_run in the settings",
    Fault.DAY_TOKENS: "This profile has used up its tokens for today; continue tomorrow, or raise tokens_per_day",
    Fault.TIME: "The answer took longer than allowed; ask for less, or raise seconds_per_run in the settings",
    Fault.STEPS: "The agent has used all its steps; tell it to continue, or raise `steps` in the settings",
    Fault.TOOL: "A tool the agent needed has failed; try again, or rephrase the request",
    Fault.BLOCKED: "The agent blocked its thread and was abandoned; try again, or rephrase the request",
    Fault.LOST_WORKER: "The agent crashed several times while answering; try again, or rephrase the request",
    Fault.RESTING: "The model keeps failing and is paused; try again in a minute",
    Fault.HOPS: "Agents kept answering each other and were cut off; make sure that one of them stops",
    Fault.BUDGET: "One message, task or event has led to more work than allowed, and was cut off; make sure that"
    " agents do not trigger each other endlessly, or raise the limit",
    Fault.NO_ANSWER: "The agent got no answer from another agent; check that agent, then try again",
    Fault.DECLINED: "The agent's action was declined",
    Fault.UNKNOWN_STEP: "The program ended during a step, and its result is unknown; check it, then retry or drop it",
    Fault.STATE: "The agent's state cannot be stored; have its brain fixed, then try again",
    Fault.PROFILE: "The profile is unknown here; choose another one or start Roost where it is set up, and try again",
    Fault.BRAIN: "This profile's brain cannot be loaded; have it fixed or choose another profile, then try again",
    Fault.UNAWAITED: "The brain called a coroutine without awaiting it, so it did nothing; have it fixed",
    Fault.INTERNAL: "The agent could not finish because of an internal error; try again",
}
_WHY = " could not answer: "
_REFERENCE = " (reference "
_DECLINED = (Invalid, NotFound, Forbidden, Conflict, Busy, LimitReached)


def sort(error: BaseException) -> Fault:
    """Classify an error."""
    if isinstance(error, BrainFailed):
        return Fault(error.kind) if str(error.kind) in set(Fault) else Fault.INTERNAL
    if isinstance(error, NoAnswer) and _is_from_roost(error):
        return Fault.NO_ANSWER
    if isinstance(error, _DECLINED) and _is_from_roost(error):
        return Fault.DECLINED
    if isinstance(error, TimeoutError | ConnectionError) and not isinstance(error, RoostError):
        return Fault.PROVIDER
    return Fault.INTERNAL


def detail(error: BaseException) -> str | None:
    """Return the message of an error that Roost wrote for users; None for others, which are only logged."""
    return _in_short(str(error)) if isinstance(error, (NoAnswer, *_DECLINED)) and _is_from_roost(error) else None


def _is_from_roost(error: BaseException) -> bool:
    """Return whether Roost raised it. A brain can raise the same class with any text in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("roost.")


def _in_short(text: str) -> str:
    """Shorten a chain of requests to the agent that was asked first and the reason of the last one."""
    asked, found, why = text.partition(_WHY)
    return f"{asked}{found}{why.rpartition(_WHY)[2].partition(_REFERENCE)[0]}"


def sentence(fault: Fault, run_id: str, advice: str | None = None, why: str | None = None) -> str:
    """Return the text for users: what happened, what to do, and the reference to the log."""
    sentence_text, _, usual = _SENTENCES[fault].partition("; ")
    if why:
        sentence_text = f"{sentence_text}: {why}"
    if advice or usual:
        sentence_text = f"{sentence_text}; {advice or usual}"
    return f"{sentence_text}{_REFERENCE}{reference(run_id)})."
