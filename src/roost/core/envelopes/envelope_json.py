"""Envelopes as JSON, for other nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from roost.core.envelopes.envelope import Envelope, Kind
from roost.core.values.priority import Priority

_NAMES = tuple(field.name for field in fields(Envelope))


def to_json(envelope: Envelope) -> dict[str, Any]:
    return {name: getattr(envelope, name) for name in _NAMES}


def of_json(values: Mapping[str, Any]) -> Envelope | None:
    """Return the envelope; None if it is one of another version."""
    if values.keys() != set(_NAMES):
        return None
    return Envelope(**{**values, "kind": Kind(values["kind"]), "priority": Priority(values["priority"])})
