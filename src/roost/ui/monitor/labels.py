"""Labels of states and faults."""

from __future__ import annotations

from roost.core.agents.agent import State

STATES = {
    State.ACTIVE: "Active",
    State.WAITING: "Waiting",
    State.IDLE: "Idle",
    State.SLEEPING: "Sleeping",
    State.STOPPED: "Stopped",
}
FAULTS = {
    "provider": "Model unreachable",
    "rate_limit": "Rate limit",
    "bad_key": "Key refused",
    "no_key": "No key",
    "model": "Model not available",
    "extra": "Package missing",
    "too_long": "Too long",
    "refused": "Refused by the model",
    "run_tokens": "Tokens of the run used up",
    "day_tokens": "Tokens of the day used up",
    "time": "Time limit",
    "steps": "Step limit",
    "tool": "Tool failed",
    "blocked": "Thread blocked",
    "lost_worker": "Crashed",
    "resting": "Provider paused",
    "hops": "Endless answers",
    "budget": "Budget used up",
    "no_answer": "No answer",
    "declined": "Declined",
    "unknown_step": "Result unknown",
    "state": "State not storable",
    "profile": "Unknown profile",
    "brain": "Brain not loadable",
    "unawaited": "Not awaited",
    "internal": "Internal error",
    "expired": "Expired",
    "full": "Inbox full",
    "untaken": "No subscriber",
    "undeliverable": "Not deliverable",
    "lost": "Lost in a crash",
}


def fault(name: str) -> str:
    """Return the label of a fault; a brain may have its own ones."""
    return FAULTS.get(name, name)
