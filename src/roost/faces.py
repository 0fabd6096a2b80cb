"""The service's faces for everything but talks, as plain methods: each drives the coroutine of the same name."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from roost.core.facts import Fact
from roost.core.meetings.shown import MeetingView
from roost.hosts.pending import drive
from roost.runtime.agents import Agents
from roost.runtime.approvals import Approvals
from roost.runtime.events import Events
from roost.runtime.letters import DeadLetters
from roost.runtime.mail import Mails
from roost.runtime.meetings import Meetings
from roost.runtime.monitor import Monitor
from roost.runtime.runs import Runs
from roost.runtime.schedules import Schedules, SleepScheduler
from roost.runtime.tasks import Tasks

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")


def plain(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """The method of the same name for plain threads, with the same signature and words."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        asked: Coroutine[Any, Any, T] = getattr(self._face, name)(*args, **options)
        return drive(asked)

    return call


def each(stream: AsyncIterator[T]) -> Iterator[T]:
    """What a stream gives, for plain threads; closed with the loop over it."""
    while (found := drive(_next(stream))) is not None:
        try:
            yield found
        except GeneratorExit:
            if isinstance(stream, AsyncGenerator):
                drive(stream.aclose())
            raise


async def _next(stream: AsyncIterator[T]) -> T | None:
    return await anext(stream, None)


class Plain(Generic[F]):
    """The methods of a face with coroutines, as plain ones."""

    def __init__(self, face: F) -> None:
        self._face = face


class PlainAgents(Plain[Agents]):
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
    broadcast = plain(Agents.broadcast)
    delete = plain(Agents.delete)
    history = plain(Agents.history)
    inspect = plain(Agents.inspect)
    find = plain(Agents.find)
    set_memory = plain(Agents.set_memory)
    memories = plain(Agents.memories)
    remember = plain(Agents.remember)
    forget = plain(Agents.forget)


class PlainTasks(Plain[Tasks]):
    """`wait` waits for the agent; the others never do."""

    send = plain(Tasks.send)
    get = plain(Tasks.get)
    list = plain(Tasks.list)
    cancel = plain(Tasks.cancel)
    wait = plain(Tasks.wait)


class PlainSchedules(Plain[Schedules]):
    create = plain(Schedules.create)
    get = plain(Schedules.get)
    list = plain(Schedules.list)
    change = plain(Schedules.change)
    pause = plain(Schedules.pause)
    resume = plain(Schedules.resume)
    delete = plain(Schedules.delete)
    next_times = plain(Schedules.next_times)


class PlainSleepScheduler(Plain[SleepScheduler]):
    schedule_wake = plain(SleepScheduler.schedule_wake)
    cancel_wake = plain(SleepScheduler.cancel_wake)
    get_next_wake_time = plain(SleepScheduler.get_next_wake_time)


class PlainMail(Plain[Mails]):
    send = plain(Mails.send)
    inbox = plain(Mails.inbox)
    get = plain(Mails.get)
    read = plain(Mails.read)
    reply = plain(Mails.reply)
    archive = plain(Mails.archive)
    thread = plain(Mails.thread)
    unread_count = plain(Mails.unread_count)


class PlainEvents(Plain[Events]):
    publish = plain(Events.publish)
    history = plain(Events.history)


class PlainMeetings(Plain[Meetings]):
    """`wait` and `watch` wait for what others do; the others never do."""

    call = plain(Meetings.call)
    join = plain(Meetings.join)
    decline = plain(Meetings.decline)
    leave = plain(Meetings.leave)
    say = plain(Meetings.say)
    move = plain(Meetings.move)
    raise_hand = plain(Meetings.raise_hand)
    grant = plain(Meetings.grant)
    pass_turn = plain(Meetings.pass_turn)
    invite = plain(Meetings.invite)
    kick = plain(Meetings.kick)
    end = plain(Meetings.end)
    view = plain(Meetings.view)
    list = plain(Meetings.list)
    minutes = plain(Meetings.minutes)
    wait = plain(Meetings.wait)

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> Iterator[MeetingView]:
        """As it is, and again whenever it has changed. Waits; ends when the meeting is over, or the program is."""
        return each(self._face.watch(user_id, meeting_id, seen_by=seen_by, after=after))


class PlainDeadLetters(Plain[DeadLetters]):
    list = plain(DeadLetters.list)
    get = plain(DeadLetters.get)
    retry = plain(DeadLetters.retry)
    retry_all = plain(DeadLetters.retry_all)
    drop = plain(DeadLetters.drop)
    drop_all = plain(DeadLetters.drop_all)


class PlainApprovals(Plain[Approvals]):
    list = plain(Approvals.list)
    get = plain(Approvals.get)
    grant = plain(Approvals.grant)
    refuse = plain(Approvals.refuse)
    answer = plain(Approvals.answer)


class PlainRuns(Plain[Runs]):
    """`replay` waits for the brain; the others never do."""

    list = plain(Runs.list)
    get = plain(Runs.get)
    replay = plain(Runs.replay)


class PlainMonitor(Plain[Monitor]):
    """`wait` and `follow` wait for what happens; the others never do."""

    facts = plain(Monitor.facts)
    states = plain(Monitor.states)
    wait = plain(Monitor.wait)
    metrics = plain(Monitor.metrics)

    def follow(self, user_id: str, *, after: str | None = None) -> Iterator[Fact]:
        """Each fact as it is told, from now on or from a cursor on. Waits; ends when the program does."""
        cursor = self.facts(user_id, limit=1).cursor if after is None else after
        return each(self._face.follow(user_id, after=cursor))


class AsyncFaces:
    """All faces of a service, as coroutines; `face` makes or finds each by its name."""

    agents: Agents
    tasks: Tasks
    schedules: Schedules
    sleep_scheduler: SleepScheduler
    mail: Mails
    events: Events
    meetings: Meetings
    dead_letters: DeadLetters
    approvals: Approvals
    runs: Runs
    monitor: Monitor

    def __init__(self, face: Callable[[str], Any]) -> None:
        for name in FACES:
            setattr(self, name, face(name))


class PlainFaces:
    """The same as plain methods."""

    def __init__(self, asynchronous: AsyncFaces) -> None:
        self.agents = PlainAgents(asynchronous.agents)
        self.tasks = PlainTasks(asynchronous.tasks)
        self.schedules = PlainSchedules(asynchronous.schedules)
        self.sleep_scheduler = PlainSleepScheduler(asynchronous.sleep_scheduler)
        self.mail = PlainMail(asynchronous.mail)
        self.events = PlainEvents(asynchronous.events)
        self.meetings = PlainMeetings(asynchronous.meetings)
        self.dead_letters = PlainDeadLetters(asynchronous.dead_letters)
        self.approvals = PlainApprovals(asynchronous.approvals)
        self.runs = PlainRuns(asynchronous.runs)
        self.monitor = PlainMonitor(asynchronous.monitor)


FACES: Mapping[str, type] = {
    "agents": Agents,
    "tasks": Tasks,
    "schedules": Schedules,
    "sleep_scheduler": SleepScheduler,
    "mail": Mails,
    "events": Events,
    "meetings": Meetings,
    "dead_letters": DeadLetters,
    "approvals": Approvals,
    "runs": Runs,
    "monitor": Monitor,
}
"""Each by its name in the service: from these the routes of the API and the methods of its client are made."""
