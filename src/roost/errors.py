"""One tree of errors; below the root stands who must act.

RoostError
├── the caller:    Invalid · NotFound · Forbidden · Conflict · Busy · LimitReached
├── the operator:  Unavailable (may be tried again)
└── the brain:     BrainFailed (told to the person who waits, as one sentence) · NoAnswer (to what it asked)
                   └── ToolFailed (told to the model, which goes on)
"""

from __future__ import annotations


class RoostError(Exception):
    """Anything Roost refuses or fails at; its text is fit to be shown to the person it concerns."""


class Invalid(RoostError):
    """What was given cannot be used; the text names it and says what is expected."""


class NotFound(RoostError):
    """There is no such thing for this user; someone else's and never existed are answered alike."""


class Forbidden(RoostError):
    """Known, but not allowed."""


class Conflict(RoostError):
    """It contradicts what is already there, such as one key with two contents."""


class Busy(RoostError):
    """Something is under way and the caller asked not to disturb it."""


class LimitReached(RoostError):
    """A configured bound is reached; the text names the bound."""


class Unavailable(RoostError):
    """The store, the disk or the program itself cannot do it now; trying again later may help."""


class BrainFailed(RoostError):
    """A brain says itself what went wrong; `kind` sorts it (see `core.faults`).

    The message is for the log. `advice`, what to do next, is for people: it takes the place of the usual one.
    """

    def __init__(self, message: str, *, kind: str = "internal", advice: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.advice = advice


class ToolFailed(BrainFailed):
    """A tool was not called, or has failed; its text is fit to be given to a model as the result."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="tool")


class NoAnswer(RoostError, TimeoutError):
    """Whom a turn asked has not answered in time, or could not."""
