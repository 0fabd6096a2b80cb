"""Correlation id: shared by everything that follows from one call, and by what brains and libraries log."""

from __future__ import annotations

from contextvars import ContextVar

ROOT: ContextVar[str] = ContextVar("roost_root", default="")
"""Id of the envelope that started the chain; set while a brain runs."""
