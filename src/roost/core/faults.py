"""What can go wrong in the background, sorted, and the one sentence a person reads about it."""

from __future__ import annotations

from enum import StrEnum

from roost.core.ids import reference
from roost.errors import BrainFailed, Busy, Conflict, Forbidden, Invalid, LimitReached, NoAnswer, NotFound, RoostError


class Fault(StrEnum):
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
    NO_ANSWER = "no_answer"
    DECLINED = "declined"
    UNKNOWN_STEP = "unknown_step"
    STATE = "state"
    PROFILE = "profile"
    BRAIN = "brain"
    INTERNAL = "internal"


_SENTENCES = {
    Fault.PROVIDER: "The model could not be reached or took too long; try again in a moment",
    Fault.RATE_LIMIT: "The model is asked too often just now; wait a minute and try again",
    Fault.BAD_KEY: "The model's provider refused the key; check it in the settings and try again",
    Fault.NO_KEY: "No key is set for the model's provider; set it as Configure says, and start Roost again",
    Fault.MODEL: "The model of this profile cannot be had; name another one in the settings and try again",
    Fault.EXTRA: "This profile needs something that is not installed; install it, and start Roost again",
    Fault.TOO_LONG: "The answer or the conversation grew too long; ask for something shorter or start a new talk",
    Fault.REFUSED: "The model refuses to answer this; say it in another way",
    Fault.RUN_TOKENS: "The answer has used up its tokens; ask for less, or raise tokens_per_run in the settings",
    Fault.DAY_TOKENS: "This profile has used up its tokens of today; go on tomorrow, or raise tokens_per_day",
    Fault.TIME: "The answer took longer than it may; ask for less, or raise seconds_per_run in the settings",
    Fault.STEPS: "The agent has taken as many steps as it may; tell it to go on, or raise `steps` in the settings",
    Fault.TOOL: "A tool the agent needed has failed; try again, or ask in another way",
    Fault.BLOCKED: "The agent blocked its thread and was given up; try again, or ask in another way",
    Fault.LOST_WORKER: "The agent stopped unexpectedly several times while answering; try again, or ask in another way",
    Fault.RESTING: "The model fails again and again and is not asked for a moment; try again in a minute",
    Fault.HOPS: "Agents answered each other without end and were cut off; see that one of them stops",
    Fault.NO_ANSWER: "The agent waited for another one in vain; see how that one does, then try again",
    Fault.DECLINED: "What the agent wanted to do was declined",
    Fault.UNKNOWN_STEP: "Whether a step was done before the program ended is not known; look, then retry or drop it",
    Fault.STATE: "What the agent wanted to keep in its state cannot be kept; have its brain mended, then try again",
    Fault.PROFILE: "The profile is not known here; choose another one or start Roost where it is set up, and try again",
    Fault.BRAIN: "This profile's brain cannot be loaded; have it mended or choose another profile, then try again",
    Fault.INTERNAL: "The agent could not finish because of an internal error; try again",
}
_WHY = " could not answer: "
_REFERENCE = " (reference "
_DECLINED = (Invalid, NotFound, Forbidden, Conflict, Busy, LimitReached)


def sort(error: BaseException) -> Fault:
    """Which of the known faults this is."""
    if isinstance(error, BrainFailed):
        return Fault(error.kind) if str(error.kind) in set(Fault) else Fault.INTERNAL
    if isinstance(error, NoAnswer) and _is_ours(error):
        return Fault.NO_ANSWER
    if isinstance(error, _DECLINED) and _is_ours(error):
        return Fault.DECLINED
    if isinstance(error, TimeoutError | ConnectionError) and not isinstance(error, RoostError):
        return Fault.PROVIDER
    return Fault.INTERNAL


def detail(error: BaseException) -> str | None:
    """What an error says, if it is one of ours that is written for people; of others only the log tells."""
    return _in_short(str(error)) if isinstance(error, (NoAnswer, *_DECLINED)) and _is_ours(error) else None


def _is_ours(error: BaseException) -> bool:
    """Whether Roost itself has raised it: a brain can raise the same, with anything in it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and str(trace.tb_frame.f_globals.get("__name__")).startswith("roost.")


def _in_short(told: str) -> str:
    """Of a chain in which each waited for the next: whom the first has asked, and why the last could not answer."""
    whom, found, why = told.partition(_WHY)
    return f"{whom}{found}{why.rpartition(_WHY)[2].partition(_REFERENCE)[0]}"


def sentence(fault: Fault, run_id: str, advice: str | None = None, why: str | None = None) -> str:
    """What the person reads: what happened, what to do, and the reference that finds it in the log."""
    told, _, usual = _SENTENCES[fault].partition("; ")
    if why:
        told = f"{told}: {why}"
    if advice or usual:
        told = f"{told}; {advice or usual}"
    return f"{told}{_REFERENCE}{reference(run_id)})."
