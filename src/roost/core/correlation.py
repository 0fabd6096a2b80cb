"""One id through everything that follows from one call: also in what brains and libraries log meanwhile."""

from __future__ import annotations

from contextvars import ContextVar

ROOT: ContextVar[str] = ContextVar("roost_root", default="")
"""The id of that with which it all began, while a brain thinks about it."""
