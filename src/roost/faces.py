"""The service's faces for everything but talks, as plain methods: each drives the coroutine of the same name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, ParamSpec, TypeVar

from roost.hosts.pending import drive
from roost.runtime.agents import Agents
from roost.runtime.events import Events
from roost.runtime.letters import DeadLetters
from roost.runtime.mail import Mails
from roost.runtime.schedules import Schedules
from roost.runtime.tasks import Tasks

P = ParamSpec("P")
T = TypeVar("T")


def plain(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """The same method for plain threads, with the same signature and words."""

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        return drive(method(self._face, *args, **options))

    return call


class PlainAgents:
    def __init__(self, face: Agents) -> None:
        self._face = face

    create = plain(Agents.create)  # type: ignore[arg-type]  # mypy and `self` beside `**config`
    create_many = plain(Agents.create_many)  # type: ignore[arg-type]
    get = plain(Agents.get)
    list = plain(Agents.list)
    configure = plain(Agents.configure)  # type: ignore[arg-type]
    start = plain(Agents.start)
    stop = plain(Agents.stop)
    restart = plain(Agents.restart)
    pause = plain(Agents.pause)
    resume = plain(Agents.resume)
    sleep = plain(Agents.sleep)
    wake = plain(Agents.wake)
    delete = plain(Agents.delete)
    history = plain(Agents.history)


class PlainTasks:
    """`wait` waits for the agent; the others never do."""

    def __init__(self, face: Tasks) -> None:
        self._face = face

    send = plain(Tasks.send)
    get = plain(Tasks.get)
    list = plain(Tasks.list)
    cancel = plain(Tasks.cancel)
    wait = plain(Tasks.wait)


class PlainSchedules:
    def __init__(self, face: Schedules) -> None:
        self._face = face


class PlainMail:
    def __init__(self, face: Mails) -> None:
        self._face = face


class PlainEvents:
    def __init__(self, face: Events) -> None:
        self._face = face


class PlainDeadLetters:
    def __init__(self, face: DeadLetters) -> None:
        self._face = face
