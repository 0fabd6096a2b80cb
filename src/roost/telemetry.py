"""OpenTelemetry spans: one per run, if the process is configured for them.

Roost sets up no exporter: `opentelemetry-instrument` does, or the program that opens Roost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from roost.ports import Tracer

log = logging.getLogger("roost.telemetry")


def tracer(environ: Mapping[str, str]) -> Tracer | None:
    """Return a tracer if OTEL_… variables configure an exporter; otherwise None, which costs nothing."""
    configured = any(name.startswith("OTEL_") and value for name, value in environ.items())
    if not configured or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        from opentelemetry import trace
    except ImportError:
        log.warning("OTEL_… variables are set, but opentelemetry is not installed; no spans are recorded")
        return None
    return spans(trace.get_tracer("roost"))


def spans(made_by: Any) -> Tracer:
    """Adapt OpenTelemetry's tracer. The span is current while the brain runs, so that its calls are child spans."""

    @contextmanager
    def span(name: str, attributes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        found: dict[str, Any] = {}
        named = {f"roost.{key}": value for key, value in attributes.items()}
        # Only the kind of fault is recorded: the message of an exception may contain anything.
        with made_by.start_as_current_span(
            name, attributes=named, record_exception=False, set_status_on_exception=False
        ) as current:
            try:
                yield found
            finally:
                for key, value in found.items():
                    current.set_attribute(f"roost.{key}", value)

    return span
