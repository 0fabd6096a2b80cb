"""Traits of a method of the service, from which its route and its clients follow. They are declared at the method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_READS, _IDEMPOTENT = "_only_reads", "_is_idempotent"


@dataclass(frozen=True, slots=True)
class ReplyField:
    """Field of a reply that holds the result of a method; part of its return type."""

    name: str


NewId = Annotated[str, ReplyField("")]
"""Id of something that the method has created; the field is the id of the namespace, such as `mailId`."""
Count = Annotated[int, ReplyField("count")]


def reads(method: F) -> F:
    """Declare that a method changes nothing: `GET` with its name in the path, and clients may repeat it."""
    setattr(method, _READS, True)
    return method


def idempotent(method: F) -> F:
    """Declare that clients may repeat a method after a lost reply, although it has no `key` and its verb is POST."""
    setattr(method, _IDEMPOTENT, True)
    return method


def only_reads(method: Callable[..., Any]) -> bool:
    return hasattr(method, _READS)


def is_idempotent(method: Callable[..., Any]) -> bool:
    return hasattr(method, _IDEMPOTENT)
