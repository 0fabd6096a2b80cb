"""Requests between agents, and their answers."""

from __future__ import annotations

from collections.abc import Mapping

from roost.core.envelopes.envelope import Envelope
from roost.core.values.records import record


@record(frozen=True, slots=True)
class Request:
    """Request of a turn to an agent, with its number in the journal."""

    envelope_id: str
    holder: str
    """Key of the asking agent, or id of the asking talk."""
    epoch: int
    number: int
    envelope: Envelope
    """Envelope for the recipient."""
    talk_run: str = ""
    """Run of the asking talk; empty if an agent asks."""


def request_name(holder: str, envelope_id: str, number: int) -> str:
    """Return the name of a request: its holder, its turn, and its number in the journal."""
    return f"{number} {envelope_id} {holder}"


def request_parts(name: str) -> tuple[str, str, int]:
    number, envelope_id, holder = name.split(" ", 2)
    return holder, envelope_id, int(number)


def asks_in_talk(name: str) -> bool:
    """Return whether a talk asks: keys of agents contain a slash, ids of talks do not."""
    return "/" not in request_parts(name)[0]


@record(frozen=True, slots=True)
class Answered:
    """Answered request. The answer holds a `text`, or an `error`."""

    request: str
    answer: Mapping[str, str]
