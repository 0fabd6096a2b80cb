"""Correlation: ids and addresses that are shared by everything that follows from one call."""

from __future__ import annotations

from contextvars import ContextVar

ROOT: ContextVar[str] = ContextVar("roost_root", default="")
"""Id of the envelope that started the chain; set while a brain runs."""
CLIENT: ContextVar[str] = ContextVar("roost_client", default="")
"""Address of the client of a request, for the audit list; empty for calls in this process."""
