"""Blocking methods of all namespaces: each drives the coroutine of the same name.

Talks have no attribute of their own: their methods are those of the service itself.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from roost.core.envelopes.mail import Mail
from roost.core.meetings.view.shown import MeetingView
from roost.core.monitoring.facts import Fact
from roost.core.talks.messages import Change
from roost.hosts.pending import drive
from roost.runtime.handlers.accounts.users import Users
from roost.runtime.handlers.agents.agents import Agents
from roost.runtime.handlers.approvals import Approvals
from roost.runtime.handlers.dead_letters import DeadLetters
from roost.runtime.handlers.events import Events
from roost.runtime.handlers.mail import Mails
from roost.runtime.handlers.meetings import Meetings
from roost.runtime.handlers.monitor import Monitor
from roost.runtime.handlers.nodes import Nodes
from roost.runtime.handlers.runs import Runs
from roost.runtime.handlers.schedules import Schedules
from roost.runtime.handlers.sleep_scheduler import SleepScheduler
from roost.runtime.handlers.talks.talks import Talks
from roost.runtime.handlers.tasks import Tasks
from roost.runtime.handlers.tokens import Tokens
from roost.runtime.handlers.webhooks.hooks import Hooks
from roost.runtime.handlers.webhooks.webhooks import Webhooks

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")


def sync_method(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]:
    """Return a blocking method with the signature and docstring of the coroutine, for threads without a loop."""
    name = method.__name__

    @functools.wraps(method)
    def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        asked: Coroutine[Any, Any, T] = getattr(self._asynchronous, name)(*args, **options)
        return drive(asked)

    return call


def talk_method(
    method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]:
    """Return a method of a service that calls the method of its talks."""
    name = method.__name__

    @functools.wraps(method)
    async def call(self: Any, /, *args: P.args, **options: P.kwargs) -> T:
        asked: Coroutine[Any, Any, T] = getattr(self._talks, name)(*args, **options)
        return await asked

    return call


def iterate(stream: AsyncIterator[T]) -> Iterator[T]:
    """Iterate over a stream on a thread without a loop; closing the iterator closes the stream."""
    while (found := drive(_next(stream))) is not None:
        try:
            yield found
        except GeneratorExit:
            if isinstance(stream, AsyncGenerator):
                drive(stream.aclose())
            raise


async def _next(stream: AsyncIterator[T]) -> T | None:
    return await anext(stream, None)


class SyncNamespace(Generic[F]):
    """Base of blocking namespaces."""

    def __init__(self, asynchronous: F) -> None:
        self._asynchronous = asynchronous


class AsyncTalks:
    """Talks as coroutines of a service."""

    _talks: Talks

    create_talk_session = talk_method(Talks.create_talk_session)
    list_sessions = talk_method(Talks.list_sessions)
    get_session = talk_method(Talks.get_session)
    rename = talk_method(Talks.rename)
    configure = talk_method(Talks.configure)
    delete = talk_method(Talks.delete)
    add_message = talk_method(Talks.add_message)
    add_attachment = talk_method(Talks.add_attachment)
    get_attachment = talk_method(Talks.get_attachment)
    get_messages = talk_method(Talks.get_messages)
    search = talk_method(Talks.search)
    export_part = talk_method(Talks.export_part)
    import_talk = talk_method(Talks.import_talk)
    stop = talk_method(Talks.stop)
    fork = talk_method(Talks.fork)
    edit_message = talk_method(Talks.edit_message)
    regenerate = talk_method(Talks.regenerate)
    list_branches = talk_method(Talks.list_branches)
    get_usage = talk_method(Talks.get_usage)

    async def export_talk(self, user_id: str, talk_session_id: str, *, format: str = "markdown") -> str:
        """Return the transcript of a talk, as `markdown`, or as `json` for `import_talk`."""
        part = await self.export_part(user_id, talk_session_id, format=format)
        texts = [part.text]
        while part.after is not None:
            part = await self.export_part(user_id, talk_session_id, format=format, after=part.after)
            texts.append(part.text)
        return "".join(texts)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> AsyncIterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        return self._talks.stream_messages(user_id, talk_session_id, after=after, follow=follow)


class SyncTalks:
    """Talks as blocking methods of a service. Only `stream_messages` and `stop` with `wait` wait for the agent."""

    _asynchronous: AsyncTalks

    create_talk_session = sync_method(Talks.create_talk_session)
    list_sessions = sync_method(Talks.list_sessions)
    get_session = sync_method(Talks.get_session)
    rename = sync_method(Talks.rename)
    configure = sync_method(Talks.configure)
    delete = sync_method(Talks.delete)
    add_message = sync_method(Talks.add_message)
    add_attachment = sync_method(Talks.add_attachment)
    get_attachment = sync_method(Talks.get_attachment)
    get_messages = sync_method(Talks.get_messages)
    search = sync_method(Talks.search)
    export_part = sync_method(Talks.export_part)
    export_talk = sync_method(AsyncTalks.export_talk)
    import_talk = sync_method(Talks.import_talk)
    stop = sync_method(Talks.stop)
    fork = sync_method(Talks.fork)
    edit_message = sync_method(Talks.edit_message)
    regenerate = sync_method(Talks.regenerate)
    list_branches = sync_method(Talks.list_branches)
    get_usage = sync_method(Talks.get_usage)

    def stream_messages(
        self, user_id: str, talk_session_id: str, *, after: str | None = None, follow: bool = False
    ) -> Iterator[Change]:
        """Yield what exists, then each piece as it is written. Waits; ends with the run, or never with `follow`."""
        return iterate(self._asynchronous.stream_messages(user_id, talk_session_id, after=after, follow=follow))


class SyncAgents(SyncNamespace[Agents]):
    create = sync_method(Agents.create)  # type: ignore[arg-type]  # mypy and `self` beside `**config`
    create_many = sync_method(Agents.create_many)  # type: ignore[arg-type]
    get = sync_method(Agents.get)
    list = sync_method(Agents.list)
    configure = sync_method(Agents.configure)  # type: ignore[arg-type]
    start = sync_method(Agents.start)
    stop = sync_method(Agents.stop)
    restart = sync_method(Agents.restart)
    pause = sync_method(Agents.pause)
    resume = sync_method(Agents.resume)
    sleep = sync_method(Agents.sleep)
    wake = sync_method(Agents.wake)
    broadcast = sync_method(Agents.broadcast)
    delete = sync_method(Agents.delete)
    history = sync_method(Agents.history)
    inspect = sync_method(Agents.inspect)
    find = sync_method(Agents.find)
    inbox = sync_method(Agents.inbox)
    set_state = sync_method(Agents.set_state)
    memories = sync_method(Agents.memories)
    remember = sync_method(Agents.remember)
    forget = sync_method(Agents.forget)

    def follow(self, user_id: str, agent_id: str | None = None, *, after: str | None = None) -> Iterator[Fact]:
        """Yield each fact about an agent, or about all agents, from now or from a cursor on. Waits."""
        cursor = drive(self._asynchronous._fact_cursor(user_id)) if after is None else after
        return iterate(self._asynchronous.follow(user_id, agent_id, after=cursor))


class SyncTasks(SyncNamespace[Tasks]):
    """Only `wait` waits for the agent."""

    send = sync_method(Tasks.send)
    get = sync_method(Tasks.get)
    list = sync_method(Tasks.list)
    cancel = sync_method(Tasks.cancel)
    wait = sync_method(Tasks.wait)


class SyncSchedules(SyncNamespace[Schedules]):
    create = sync_method(Schedules.create)
    get = sync_method(Schedules.get)
    list = sync_method(Schedules.list)
    change = sync_method(Schedules.change)
    pause = sync_method(Schedules.pause)
    resume = sync_method(Schedules.resume)
    delete = sync_method(Schedules.delete)
    next_times = sync_method(Schedules.next_times)


class SyncSleepScheduler(SyncNamespace[SleepScheduler]):
    schedule_wake = sync_method(SleepScheduler.schedule_wake)
    cancel_wake = sync_method(SleepScheduler.cancel_wake)
    get_next_wake_time = sync_method(SleepScheduler.get_next_wake_time)


class SyncMail(SyncNamespace[Mails]):
    """Only `wait` and `follow` wait for mail."""

    send = sync_method(Mails.send)
    inbox = sync_method(Mails.inbox)
    sent = sync_method(Mails.sent)
    get = sync_method(Mails.get)
    read = sync_method(Mails.read)
    reply = sync_method(Mails.reply)
    forward = sync_method(Mails.forward)
    archive = sync_method(Mails.archive)
    delete = sync_method(Mails.delete)
    import_mail = sync_method(Mails.import_mail)
    thread = sync_method(Mails.thread)
    unread_count = sync_method(Mails.unread_count)
    arrivals = sync_method(Mails.arrivals)
    wait = sync_method(Mails.wait)

    def follow(self, user_id: str, *, after: str | None = None) -> Iterator[Mail]:
        """Yield each mail to the user when it arrives, from now or from a cursor on. Waits; ends with the process."""
        cursor = self.arrivals(user_id, limit=1).cursor if after is None else after
        return iterate(self._asynchronous.follow(user_id, after=cursor))


class SyncEvents(SyncNamespace[Events]):
    publish = sync_method(Events.publish)
    history = sync_method(Events.history)


class SyncMeetings(SyncNamespace[Meetings]):
    """Only `wait` and `watch` wait for participants."""

    call = sync_method(Meetings.call)
    join = sync_method(Meetings.join)
    decline = sync_method(Meetings.decline)
    leave = sync_method(Meetings.leave)
    say = sync_method(Meetings.say)
    move = sync_method(Meetings.move)
    raise_hand = sync_method(Meetings.raise_hand)
    grant = sync_method(Meetings.grant)
    pass_turn = sync_method(Meetings.pass_turn)
    invite = sync_method(Meetings.invite)
    kick = sync_method(Meetings.kick)
    end = sync_method(Meetings.end)
    cancel = sync_method(Meetings.cancel)
    view = sync_method(Meetings.view)
    list = sync_method(Meetings.list)
    overview = sync_method(Meetings.overview)
    views = sync_method(Meetings.views)
    minutes = sync_method(Meetings.minutes)
    wait = sync_method(Meetings.wait)

    def watch(
        self, user_id: str, meeting_id: str, *, seen_by: str | None = None, after: str | None = None
    ) -> Iterator[MeetingView]:
        """Yield the view, and again after each change. Waits; ends with the meeting or the process."""
        return iterate(self._asynchronous.watch(user_id, meeting_id, seen_by=seen_by, after=after))


class SyncDeadLetters(SyncNamespace[DeadLetters]):
    list = sync_method(DeadLetters.list)
    get = sync_method(DeadLetters.get)
    retry = sync_method(DeadLetters.retry)
    retry_all = sync_method(DeadLetters.retry_all)
    drop = sync_method(DeadLetters.drop)
    drop_all = sync_method(DeadLetters.drop_all)


class SyncApprovals(SyncNamespace[Approvals]):
    list = sync_method(Approvals.list)
    get = sync_method(Approvals.get)
    in_talk = sync_method(Approvals.in_talk)
    approve = sync_method(Approvals.approve)
    decline = sync_method(Approvals.decline)
    answer = sync_method(Approvals.answer)
    allow_always = sync_method(Approvals.allow_always)
    permissions = sync_method(Approvals.permissions)
    revoke = sync_method(Approvals.revoke)


class SyncRuns(SyncNamespace[Runs]):
    """Only `replay` waits for the brain."""

    list = sync_method(Runs.list)
    get = sync_method(Runs.get)
    replay = sync_method(Runs.replay)


class SyncMonitor(SyncNamespace[Monitor]):
    """Only `wait` and `follow` wait for facts."""

    facts = sync_method(Monitor.facts)
    states = sync_method(Monitor.states)
    wait = sync_method(Monitor.wait)
    metrics = sync_method(Monitor.metrics)
    figures = sync_method(Monitor.figures)
    edges = sync_method(Monitor.edges)

    def follow(self, user_id: str, *, after: str | None = None) -> Iterator[Fact]:
        """Yield each fact as it is recorded, from now or from a cursor on. Waits; ends with the process."""
        cursor = self.facts(user_id, limit=1).cursor if after is None else after
        return iterate(self._asynchronous.follow(user_id, after=cursor))


class SyncTokens(SyncNamespace[Tokens]):
    create = sync_method(Tokens.create)
    list = sync_method(Tokens.list)
    revoke = sync_method(Tokens.revoke)


class SyncUsers(SyncNamespace[Users]):
    """For admins, and for the owner of the store."""

    add = sync_method(Users.add)
    list = sync_method(Users.list)
    get = sync_method(Users.get)
    disable = sync_method(Users.disable)
    enable = sync_method(Users.enable)
    reset = sync_method(Users.reset)
    set_role = sync_method(Users.set_role)
    delete = sync_method(Users.delete)
    export = sync_method(Users.export)
    audit = sync_method(Users.audit)


class SyncWebhooks(SyncNamespace[Webhooks]):
    """Only `test` waits for a receiver."""

    create = sync_method(Webhooks.create)
    list = sync_method(Webhooks.list)
    get = sync_method(Webhooks.get)
    change = sync_method(Webhooks.change)
    pause = sync_method(Webhooks.pause)
    resume = sync_method(Webhooks.resume)
    rotate = sync_method(Webhooks.rotate)
    delete = sync_method(Webhooks.delete)
    test = sync_method(Webhooks.test)
    deliveries = sync_method(Webhooks.deliveries)


class SyncHooks(SyncNamespace[Hooks]):
    create = sync_method(Hooks.create)
    list = sync_method(Hooks.list)
    get = sync_method(Hooks.get)
    delete = sync_method(Hooks.delete)


class SyncNodes(SyncNamespace[Nodes]):
    """For admins, and for the owner of the store."""

    list = sync_method(Nodes.list)
    drain = sync_method(Nodes.drain)


class AsyncNamespaces(AsyncTalks):
    """All namespaces of a service as coroutines; `namespace` returns each by its name."""

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
    tokens: Tokens
    users: Users
    webhooks: Webhooks
    hooks: Hooks
    nodes: Nodes

    def __init__(self, namespace: Callable[[str], Any]) -> None:
        self._talks = namespace("talks")
        for name in NAMESPACES:
            setattr(self, name, namespace(name))


class SyncNamespaces(SyncTalks):
    """All namespaces of a service as blocking methods."""

    def __init__(self, asynchronous: AsyncNamespaces) -> None:
        self._asynchronous = asynchronous
        self.agents = SyncAgents(asynchronous.agents)
        self.tasks = SyncTasks(asynchronous.tasks)
        self.schedules = SyncSchedules(asynchronous.schedules)
        self.sleep_scheduler = SyncSleepScheduler(asynchronous.sleep_scheduler)
        self.mail = SyncMail(asynchronous.mail)
        self.events = SyncEvents(asynchronous.events)
        self.meetings = SyncMeetings(asynchronous.meetings)
        self.dead_letters = SyncDeadLetters(asynchronous.dead_letters)
        self.approvals = SyncApprovals(asynchronous.approvals)
        self.runs = SyncRuns(asynchronous.runs)
        self.monitor = SyncMonitor(asynchronous.monitor)
        self.tokens = SyncTokens(asynchronous.tokens)
        self.users = SyncUsers(asynchronous.users)
        self.webhooks = SyncWebhooks(asynchronous.webhooks)
        self.hooks = SyncHooks(asynchronous.hooks)
        self.nodes = SyncNodes(asynchronous.nodes)


NAMESPACES: Mapping[str, type] = {
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
    "tokens": Tokens,
    "users": Users,
    "webhooks": Webhooks,
    "hooks": Hooks,
    "nodes": Nodes,
}
"""Namespaces by name, each an attribute of a service."""
HANDLERS: Mapping[str, type] = {"talks": Talks, **NAMESPACES}
"""Classes of all methods: the routes of the API and the methods of its client are built from them."""
