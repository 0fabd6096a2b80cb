"""Tree of errors, grouped by who has to act.

RoostError
├── the caller:    Invalid · NotFound · Forbidden · Conflict · Busy · LimitReached
│                  └── StaleCursor (a Conflict: read again from the start)
├── the operator:  Unavailable (may be retried)
└── the brain:     BrainFailed (shown to the user as one sentence) · NoAnswer (to a request)
                   └── ToolFailed (returned to the model, which continues)
"""

from __future__ import annotations


class RoostError(Exception):
    """Root of all errors that Roost raises; the message may be shown to the user."""


class Invalid(RoostError):
    """Invalid argument; the message names it and says what is expected."""


class NotFound(RoostError):
    """Missing for this user; things of other users look the same as things that never existed."""


class Forbidden(RoostError):
    """Operation that this user may not perform."""


class Conflict(RoostError):
    """Contradiction to existing data, such as one key with two contents."""


class StaleCursor(Conflict):
    """Cursor of another state of the store, which was restored from a backup or replaced by an older copy.

    Read again without `after`.
    """


class Busy(RoostError):
    """A run is in progress, and the caller asked not to interrupt it."""


class LimitReached(RoostError):
    """A configured limit is reached; the message names it."""


class Unavailable(RoostError):
    """Temporary failure of the store, the disk or the process; a later retry may succeed.

    The message is for operators and may name a file or a server. `public` is for visitors and names neither.
    """

    def __init__(self, message: str = "", *, public: str | None = None) -> None:
        super().__init__(message)
        self.public = message if public is None else public


def public(error: Exception) -> str:
    """Return the part of an error message that visitors may read."""
    return error.public if isinstance(error, Unavailable) else str(error)


class InUse(Unavailable):
    """Another process has locked the store, perhaps only for a moment."""


class BrainFailed(RoostError):
    """Failure of a brain; `kind` classifies it (see `core.failures.faults`).

    The message is for the log. `advice`, the next step, is for users and replaces the usual one of the kind.
    """

    def __init__(self, message: str, *, kind: str = "internal", advice: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.advice = advice


class ToolFailed(BrainFailed):
    """Failed or rejected call of a tool; the message is returned to the model as the result."""

    def __init__(self, message: str) -> None:
        super().__init__(message, kind="tool")


class NoAnswer(RoostError, TimeoutError):
    """A request of a turn got no answer in time, or its recipient failed."""
