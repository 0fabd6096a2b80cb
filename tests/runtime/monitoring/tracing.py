"""A tracer of OpenTelemetry that keeps its spans, on OpenTelemetry's own code for the span that is current."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from opentelemetry import trace


class KeptSpan(trace.NonRecordingSpan):
    """Recorded span: attributes, exceptions, states, and whether it has ended."""

    def __init__(self, name: str, attributes: Mapping[str, Any]) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.attributes = dict(attributes)
        self.exceptions: list[BaseException] = []
        self.states: list[Any] = []
        self.has_ended = False

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value

    def record_exception(self, exception: BaseException, *_: Any, **__: Any) -> None:
        self.exceptions.append(exception)

    def set_status(self, status: Any, description: str | None = None) -> None:
        self.states.append(status)

    def end(self, end_time: int | None = None) -> None:
        self.has_ended = True


class KeepingTracer:
    def __init__(self) -> None:
        self.spans: list[KeptSpan] = []

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: Mapping[str, Any], **options: Any) -> Iterator[KeptSpan]:
        span = KeptSpan(name, attributes)
        self.spans.append(span)
        with trace.use_span(span, end_on_exit=True, **options):
            yield span
