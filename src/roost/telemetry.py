"""Spans for OpenTelemetry: one a run, where the process that Roost runs in is set up for them.

Roost sets up no exporter of its own: `opentelemetry-instrument` does, or the program that opens Roost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from roost.ports import Tracer

log = logging.getLogger("roost.telemetry")


def tracer(environ: Mapping[str, str]) -> Tracer | None:
    """None, and so no cost at all, unless OTEL_… variables say where spans go."""
    configured = any(name.startswith("OTEL_") and value for name, value in environ.items())
    if not configured or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry import trace
    except ImportError:
        log.warning("OTEL_… variables are set, but opentelemetry is not installed: there are no spans")
        return None
    return spans(trace.get_tracer("roost"))


def spans(made_by: Any) -> Tracer:
    """By an OpenTelemetry tracer. The span is the current one while the brain thinks: what it calls is below it."""

    @contextmanager
    def span(name: str, attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        found: dict[str, Any] = {}
        named = {f"roost.{key}": value for key, value in attributes.items()}
        # What was wrong is told by the fault alone: a message of an exception may contain anything.
        with made_by.start_as_current_span(
            name, attributes=named, record_exception=False, set_status_on_exception=False
        ) as current:
            try:
                yield found
            finally:
                for key, value in found.items():
                    current.set_attribute(f"roost.{key}", value)

    return span
