"""One suite for all forms of the service: the same calls give the same results and errors.

The forms are plain methods and coroutines, in this process and over the network.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

import roost
from roost import sync
from roost.client import AsyncRemoteService, RemoteService, aconnect, connect
from roost.client import http as client_http
from roost.client import namespaces as client_faces
from roost.core.monitoring.figures import EdgeCount, FigureName
from roost.core.talks.messages import Cursor, TalkLog
from roost.hosts.pending import drive
from roost.protocol import prometheus
from roost.protocol.namespaces import methods
from roost.sync import HANDLERS, NAMESPACES
from tests.api.conftest import BRAINS, deploy
from tests.api.serving import Served, serving
from tests.client import looped
from tests.client.conftest import Dial
from tests.client.proxy import failing
from tests.conftest import QUICK, Open, eventually
from tests.outbound.receiver import receiving, reply
from tests.servers import ROOT

Face = roost.AgentService | RemoteService
Form = Callable[..., Face]
FORMS = ("async in process", "remote", "async remote")
LATER = datetime(2040, 1, 1, 9, tzinfo=UTC)
PLAIN = {
    "agents": sync.SyncAgents,
    "tasks": sync.SyncTasks,
    "schedules": sync.SyncSchedules,
    "sleep_scheduler": sync.SyncSleepScheduler,
    "mail": sync.SyncMail,
    "events": sync.SyncEvents,
    "meetings": sync.SyncMeetings,
    "dead_letters": sync.SyncDeadLetters,
    "approvals": sync.SyncApprovals,
    "runs": sync.SyncRuns,
    "monitor": sync.SyncMonitor,
    "tokens": sync.SyncTokens,
    "users": sync.SyncUsers,
    "webhooks": sync.SyncWebhooks,
    "hooks": sync.SyncHooks,
    "nodes": sync.SyncNodes,
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest, service: Open) -> Iterator[Form]:
    """A factory of a service in another form than plain methods of this process."""
    with ExitStack() as stack:

        def opened(limits: roost.Limits = QUICK) -> Face:
            own = service(BRAINS, name="form.db", tools=[deploy], limits=limits)
            if request.param == "async in process":
                return cast(Face, looped.Looped(own.asynchronous, stack.enter_context(asyncio.Runner())))
            served = stack.enter_context(serving(own))
            dial = connect if request.param == "remote" else looped.connect
            return stack.enter_context(dial(served.url, served.identity.token))

        yield opened


# --- one story, twice ------------------------------------------------------------------------------------


def talks_story(s: Face) -> list[Any]:
    talk = s.create_talk_session("ann", profile="parrot", busy="queue", title="Grüße 🐦", temperature=0.5)
    other = s.create_talk_session("ann", profile="endless")
    told: list[Any] = [s.get_session("ann", talk), len(s.list_sessions("ann")), s.list_sessions("ann", before=other)]
    told += [s.rename("ann", talk, "Birds"), s.configure("ann", talk, busy="reject", options={"model": "m"})]
    told += [s.add_message("ann", talk, "hello you", key="k"), s.add_message("ann", talk, "hello you", key="k")]
    told += [[change.message.content for change in s.stream_messages("ann", talk)][-1]]
    file = s.add_attachment("ann", "dir/Grüße 🐦.txt", b"seeds" * 100_000)
    with_file = s.create_talk_session("ann", profile="parrot")
    told += [s.get_attachment("ann", file.attachment_id), file.media_type]
    told += [s.add_message("ann", with_file, "see", attachments=[file.attachment_id]).attachments]
    told += [next(change.message.attachments for change in s.stream_messages("ann", with_file))]
    told += [s.get_messages("ann", with_file).messages[0], s.delete("ann", with_file)]
    page = s.get_messages("ann", talk)
    told += [page.messages, page.more_before, s.get_messages("ann", talk, before=2, limit=1).messages]
    told += [s.get_messages("ann", talk, after=page.cursor).messages]
    found = s.search("ann", "hell", limit=1)
    told += [found.hits, s.search("ann", "hell", after=found.cursor, talk_session_id=talk).hits]
    exported = s.export_talk("ann", talk, format="json")
    copy = s.import_talk("ann", exported, profile="parrot")
    told += [s.export_talk("ann", copy), s.export_part("ann", copy, after=1), s.get_messages("ann", copy).messages]
    s.add_message("ann", other, "go")
    next(one for one in s.stream_messages("ann", other) if one.message.content == "part1 ")
    told += [s.stop("ann", other, wait=1000), s.get_messages("ann", other).messages[-1].status]
    told += [s.delete("ann", other), len(s.list_sessions("ann"))]
    edited = s.edit_message("ann", talk, 1, "hello all", key="k")
    told += [edited.parent_seq, s.edit_message("ann", talk, 1, "hello all", key="k") is not None]
    told += [[change.message.content for change in s.stream_messages("ann", edited.talk_session_id)][-1]]
    again = s.regenerate("ann", talk, seq=2).talk_session_id
    told += [[change.message.content for change in s.stream_messages("ann", again)][-1]]
    told += [s.fork("ann", talk, seq=1, title="Fork").messages, len(s.list_sessions("ann"))]
    told += [s.get_usage("ann", talk)]
    return [*told, [branch.parent_seq for branch in s.list_branches("ann", again)]]


def agents_story(s: Face) -> list[Any]:
    settings: dict[str, Any] = {
        "profile": "parrot",
        "max_concurrent_tasks": 2,
        "wake_on_priority": "high",
        "task_expiry": None,
        "subscriptions": ["alerts.*", {"event": "data", "fields": {"aB_c": [1, None]}}],
        "description": "grüß 🐦",
        "groups": ["day", "Nächte"],
    }
    told: list[Any] = [s.agents.create("ann", "d", start=False, **settings), s.agents.create("ann", "e")]
    told += [s.agents.create_many("ann", ["f", "g"], profile="parrot"), s.agents.list("ann", limit=3)]
    told += [s.agents.list("ann", after="d", state="idle"), s.agents.configure("ann", "e", retry_delay=0.5)]
    again = s.agents.get("ann", "d").config.subscriptions
    told += [s.agents.configure("ann", "e", subscriptions=again).config == s.agents.get("ann", "e").config]
    told += [s.agents.start("ann", "d"), s.agents.pause("ann", "d"), s.agents.resume("ann", "d")]
    wake_on = roost.any_of(roost.event("alerts.*"), roost.all_of(roost.mail("high"), roost.load_below(cpu=0.5)))
    told += [s.agents.sleep("ann", "d", until=LATER, wake_on=wake_on), s.agents.wake("ann", "d", "enough")]
    told += [s.agents.sleep("ann", "d", until=LATER.timestamp()), s.agents.restart("ann", "d")]
    told += [s.agents.stop("ann", "e"), s.agents.history("ann", "d", limit=3), s.agents.delete("ann", "f")]
    told += [s.agents.set_state("ann", "e", {"aB_c": [1, {"x": None}]}), s.agents.inspect("ann", "e")]
    told += [s.agents.find("ann", "grüß"), s.agents.find("ann", "nothing")]
    told += [s.agents.list("ann", text="grüß", profile="parrot", paused=False, failing=False)]
    told += [s.agents.list("ann", paused=True), s.agents.inbox("ann", "d"), s.agents.inbox("ann", "d", after="x")]
    told += [s.agents.broadcast("ann", "hello"), s.agents.broadcast("ann", "hello", group="Nächte", ids="d*")]
    return told


def clock_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", profile="parrot")
    told: list[Any] = [
        s.schedules.create("ann", "d", "check", cron="*/15 * * * *", zone="Europe/Berlin", name="check", missed="all"),
        s.schedules.create("ann", "agent:d", "once", at=LATER, name="once", priority="high"),
        s.schedules.create("ann", "d", "often", every=timedelta(hours=1), name="often", overlap="queue_one"),
    ]
    first, second, third = (made.schedule_id for made in told)
    told += [s.schedules.get("ann", second), s.schedules.list("ann", agent="d", limit=2)]
    told += [s.schedules.change("ann", third, every=60, prompt="more often").prompt, s.schedules.pause("ann", first)]
    told += [s.schedules.next_times("ann", first), s.schedules.next_times("ann", second)]
    told += [len(s.schedules.next_times("ann", third, 7)), s.schedules.resume("ann", first).paused]
    told += [s.schedules.delete("ann", first), len(s.schedules.list("ann"))]
    s.agents.sleep("ann", "d", wake_on=roost.event("x"))
    told += [s.sleep_scheduler.schedule_wake("ann", "d", LATER), s.sleep_scheduler.get_next_wake_time("ann", "d")]
    told += [s.sleep_scheduler.cancel_wake("ann", "d"), s.sleep_scheduler.get_next_wake_time("ann", "d")]
    return told


def work_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", profile="parrot")
    task = s.tasks.send("ann", "d", "say this", priority="high", key="k", expires_in=1000, max_attempts=2)
    told: list[Any] = [task == s.tasks.send("ann", "d", "say this", key="k"), s.tasks.wait("ann", task, 10)]
    s.agents.stop("ann", "d")
    waiting = s.tasks.send("ann", "agent:d", "never")
    told += [s.tasks.wait("ann", waiting, timeout=0), s.tasks.get("ann", waiting), s.tasks.cancel("ann", waiting)]
    told += [s.tasks.list("ann", agent="d", limit=1), s.tasks.list("ann", status="done"), s.tasks.list("ann")]
    event = s.events.publish("ann", "data_ready", {"n": [1, 2.5, None, True], "aB_c": "ü"}, priority="high")
    told += [s.events.history("ann", name="data_*", since=0.0, until=LATER), s.events.history("ann", before=event)]
    [letter] = s.dead_letters.list("ann", kind="event")
    told += [letter, s.dead_letters.get("ann", letter.letter_id), s.dead_letters.list("ann", agent="d")]
    s.agents.configure("ann", "d", subscriptions=["data_ready"])
    told += [s.dead_letters.list("ann", fault="untaken"), s.dead_letters.drop_all("ann", kind="task", fault="timeout")]
    told += [s.dead_letters.retry("ann", letter.letter_id), s.dead_letters.list("ann")]
    s.events.publish("ann", "lost")
    s.events.publish("ann", "lost", optional=True)
    told += [s.dead_letters.retry_all("ann"), s.dead_letters.drop_all("ann", agent="d"), s.dead_letters.drop_all("ann")]
    return told


def mail_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", start=False)
    one = s.mail.send("ann", "user:ann", "Hello", "to\nmyself", priority="urgent", key="k", expires_in=1000)
    s.mail.send("ann", "user:ann", "From d", "body", sender="agent:d")
    told: list[Any] = [s.mail.inbox("ann"), s.mail.unread_count("ann"), s.mail.get("ann", one), s.mail.read("ann", one)]
    s.mail.reply("ann", one, "indeed", subject="Other", priority="low")
    thread = s.mail.get("ann", one).thread_id
    told += [s.mail.thread("ann", thread), s.mail.archive("ann", one), s.mail.inbox("ann", status="unread")]
    s.mail.send("ann", "agent:d", "Work", "please")
    told += [s.mail.inbox("ann", "agent:d", limit=1), s.mail.unread_count("ann", "agent:d")]
    told.append(s.mail.inbox("ann", include_archived=True, before=None))
    told.append(s.mail.sent("ann", limit=2, before=None))
    old: dict[str, Any] = {"created": datetime(2026, 1, 1, tzinfo=UTC), "read_at": datetime(2026, 1, 2, tzinfo=UTC)}
    for _ in range(2):
        told.append(s.mail.import_mail("ann", "mail_019bd8a3f0000000000000001", "user:bob", "Old", "words", **old))
    told.append(s.mail.get("ann", "mail_019bd8a3f0000000000000001"))
    page = s.mail.arrivals("ann", after="0", limit=1)
    told += [page, s.mail.wait("ann", page.cursor, 0), next(s.mail.follow("ann", after=page.cursor)).subject]
    told.append(s.mail.forward("ann", one, "agent:d", "see below", priority="low", key="f"))
    s.mail.delete("ann", "mail_019bd8a3f0000000000000001")
    return told


def monitor_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", profile="parrot", description="says it again")
    start = s.monitor.facts("ann", limit=1)
    told: list[Any] = [[fact.name for fact in start.facts], s.monitor.wait("ann", start.cursor, 0).facts]
    s.tasks.wait("ann", s.tasks.send("ann", "d", "hello"))
    stream = s.monitor.follow("ann", after=start.cursor)
    facts = [next(stream) for _ in range(5)]
    s.agents.create("ann", "other", start=False)
    for agent in ("d", None):
        of_agents = s.agents.follow("ann", agent, after=start.cursor)
        told.append([(fact.name, fact.about) for fact in (next(of_agents) for _ in range(2))])
    told.append(next(s.agents.follow("ann", "other", after=start.cursor)).about)
    told += [(fact.name, fact.about, sorted(fact.data), fact.root) for fact in facts]
    told += [s.monitor.facts("ann", after=facts[0].cursor).facts[0] == facts[1], s.agents.find("ann", "AGAIN")]
    s.agents.set_state("ann", "d", {"aB_c": [1, None]})
    eventually(lambda: s.agents.inspect("ann", "d").changes[0].after == "idle")
    past: dict[str, Any] = {"since": datetime(2020, 1, 1, tzinfo=UTC), "until": datetime(2020, 1, 2, tzinfo=UTC)}
    told += [s.monitor.figures("ann", **past, name="runs", width=7200.0), s.monitor.edges("ann", **past)]
    return [*told, s.agents.inspect("ann", "d"), s.monitor.states("ann")]


def memory_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", start=False)
    told: list[Any] = [
        s.agents.remember("ann", "d", "Ann likes grüne Vögel 🐦", key="ann"),
        s.agents.memories("ann", "d"),
    ]
    s.agents.remember("ann", "d", "no key")
    told += [[one.text for one in s.agents.memories("ann", "d")], s.agents.memories("ann", "d", "GRUNE 🐦")]
    told += [s.agents.memories("ann", "d", limit=5, before=s.agents.memories("ann", "d", limit=1)[0].key)]
    told += [s.agents.memories("ann", "d", query='"*-\0'), s.agents.inspect("ann", "d").memories]
    told += [s.agents.forget("ann", "d", "ann"), s.agents.forget("ann", "d", "ann"), len(s.agents.memories("ann", "d"))]
    return told


def journal_story(s: Face) -> list[Any]:
    s.agents.create("ann", "d", profile="careful")
    told: list[Any] = [s.approvals.list("ann")]
    for decide in ("approve", "decline", "answer", "allow"):
        task = s.tasks.send("ann", "d", decide)
        eventually(lambda: s.approvals.list("ann", limit=1))
        [asked] = s.approvals.list("ann")
        told += [asked, s.approvals.get("ann", asked.approval_id)]
        if decide == "approve":
            told.append(s.approvals.approve("ann", asked.approval_id))
        elif decide == "decline":
            told.append(s.approvals.decline("ann", asked.approval_id, reason="not today"))
        elif decide == "allow":
            told.append(s.approvals.allow_always("ann", asked.approval_id))
        else:
            told.append(s.approvals.answer("ann", asked.approval_id, "it was there already"))
        told.append(s.tasks.wait("ann", task, 10))
    run = s.runs.list("ann", agent="d", limit=1)[0]
    told += [run, s.runs.get("ann", run.run_id), s.runs.replay("ann", run.run_id)]
    told.append(s.approvals.in_talk("ann", s.create_talk_session("ann", profile="careful"), limit=5))
    told += [s.approvals.permissions("ann"), s.approvals.revoke("ann", "deploy", agent_id="d")]
    newest = s.approvals.list("ann", all=True)[0].approval_id
    return [*told, len(s.approvals.list("ann", all=True, before=newest))]


def meetings_story(s: Face) -> list[Any]:
    for name in ("d", "e", "f"):
        s.agents.create("ann", name, start=False)
    people = ["user:ann", "agent:d"]
    game: dict[str, Any] = {"game": "tic-tac-toe", "setting": {"players": people}}
    game |= {"optional": ["agent:d", "agent:e"], "floor": "moderator", "key": "k"}
    one = s.meetings.call("ann", "Grüße 🐦", **game)
    told: list[Any] = [one == s.meetings.call("ann", "Grüße 🐦", **game), s.meetings.view("ann", one, limit=1)]
    told += [s.meetings.say("ann", one, "to\nall", to=["agent:d"], key="w"), s.meetings.move("ann", one, {"cell": 5})]
    told += [s.meetings.minutes("ann", one), s.meetings.invite("ann", one, "agent:f").participants]
    told += [s.meetings.kick("ann", one, "agent:e", "no room").participants, s.meetings.list("ann", phase="running")]
    stream = s.meetings.watch("ann", one)
    told += [next(stream).phase, s.meetings.raise_hand("ann", one).hands, s.meetings.grant("ann", one, "user:ann")]
    told += [next(stream).words, s.meetings.pass_turn("ann", one).speakers]
    cursor = s.meetings.view("ann", one).cursor
    told += [s.meetings.wait("ann", one, cursor, timeout=0).cursor == cursor, s.meetings.end("ann", one, "fine").over]
    told += [s.meetings.wait("ann", one, cursor).minutes, [view.phase for view in stream][-1]]
    two = s.meetings.call("ann", "Two", required=["user:ann"], by="agent:d", priority="high")
    told += [s.meetings.join("ann", two).status, s.meetings.leave("ann", two, "tired")]
    three = s.meetings.call("ann", "Three", required=["user:ann"], optional=["agent:e"], by="agent:d")
    told += [s.meetings.decline("ann", three, "no time"), s.meetings.list("ann", participant="agent:d")]
    four = s.meetings.call("ann", "Four", required=["user:ann"], by="agent:d")
    told += [s.meetings.cancel("ann", four, "rain", by="agent:d"), s.meetings.cancel("ann", four, by="agent:d").reason]
    told += [s.meetings.overview("ann", phase="failed"), s.meetings.views("ann", four)]
    return told


def tokens_story(s: Face) -> list[Any]:
    one = s.tokens.create("ann", "Grüße 🐦", scopes=["talks", "agents:read"], expires_in=3600)
    two = s.tokens.create("ann", "all")
    told: list[Any] = [one.token, two.token, len(one.secret), one.secret[:6], one.secret != two.secret]
    told += [s.tokens.list("ann"), s.tokens.list("ann", limit=1), s.tokens.list("ann", after=one.token.token_id)]
    return [*told, s.tokens.revoke("ann", one.token.token_id), s.tokens.list("ann"), s.tokens.list("bob")]


def users_story(s: Face) -> list[Any]:
    one = s.users.add("root", "ann", role="admin")
    two = s.users.add("root", "bob")
    told: list[Any] = [one.account, two.account, s.users.get("root", "bob"), *s.users.list("root", limit=1)]
    told += [*s.users.list("root", after="ann"), s.users.disable("root", "bob"), s.users.enable("root", "bob")]
    told += [s.users.set_role("root", "bob", "admin"), s.users.reset("root", "bob").account]
    told = [replace(account, session_epoch=0) for account in told]  # it begins with the time
    told += [len(one.code), one.code != two.code, len(s.users.audit("root", limit=3))]
    told += [sorted(json.loads(s.users.export("root", "bob").text)), s.users.export("root", "bob").after]
    told += [s.users.delete("root", "bob"), len(s.users.list("root"))]
    told += [s.nodes.list("root"), s.nodes.list("root", limit=1)]
    with pytest.raises(roost.NotFound, match="it has left, or it never joined"):
        s.nodes.drain("root", "node_never")
    newest = s.users.audit("root", limit=1)[0].entry_id
    return [*told, [(entry.actor, entry.action) for entry in s.users.audit("root", before=newest)]]


def webhooks_story(s: Face) -> list[Any]:
    with receiving(lambda connection: reply(connection, 503, b"busy")) as receiver:
        url = f"http://127.0.0.1:{receiver.port}/"
        one = s.webhooks.create("ann", url, events=["AgentCreated", "Task*"], name="Grüße 🐦")
        told: list[Any] = [one.webhook.name, one.webhook.events, one.secret[:6], len(one.secret)]
        name = one.webhook.webhook_id
        told += [s.webhooks.pause("ann", name).reason, s.webhooks.change("ann", name, events=["AgentCreated"]).events]
        s.agents.create("ann", "d")
        tested = s.webhooks.test("ann", name)
        told += [tested.state, tested.status, tested.error, tested.reply, len(receiver.requests)]
        shown = s.webhooks.deliveries("ann", name)
        told += [[(one.event, one.state) for one in shown], len(s.webhooks.deliveries("ann", name, limit=1))]
        told += [len(s.webhooks.deliveries("ann", name, before=shown[0].delivery_id))]
        receiver.answer = lambda connection: reply(connection, 200)
        told += [s.webhooks.resume("ann", name).paused, s.webhooks.rotate("ann", name).secret != one.secret]
        eventually(lambda: len(receiver.requests) > 1)
        eventually(lambda: all(one.state != "pending" for one in s.webhooks.deliveries("ann", name)))
        told += [s.webhooks.get("ann", name).failures, len(s.webhooks.list("ann")), s.webhooks.list("bob")]
        return [*told, s.webhooks.list("ann", after=name), s.webhooks.delete("ann", name), s.webhooks.list("ann")]


def hooks_story(s: Face) -> list[Any]:
    one = s.hooks.create("ann", event="build.done", name="Grüße 🐦", headers=["X-GitHub-Event"])
    s.agents.create("ann", "d", start=False)
    two = s.hooks.create("ann", agent="d", task="Do {body}", secret=False)
    told: list[Any] = [one.hook, two.hook, one.path[:12], len(one.path), str(one.secret)[:6], two.secret]
    told += [s.hooks.list("ann"), s.hooks.list("ann", after=one.hook.hook_id), s.hooks.get("ann", one.hook.hook_id)]
    return [*told, s.hooks.delete("ann", one.hook.hook_id), len(s.hooks.list("ann")), s.hooks.list("bob")]


STORIES = [
    hooks_story,
    webhooks_story,
    users_story,
    tokens_story,
    talks_story,
    agents_story,
    clock_story,
    work_story,
    mail_story,
    monitor_story,
    memory_story,
    journal_story,
    meetings_story,
]
IDS = re.compile(
    r"\b(talk|attachment|token|hook|key|approval|task|mail|meeting|schedule|event|change|dead|letter|thread|envelope|user|run)"
    r"_[0-9a-f]{24,25}\b"
)
TIMES = re.compile(
    r"cursor='[0-9a-f]+'|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|- \d\d:\d\d:\d\d"
    r"|datetime\.datetime\([^)]*\)+|TzInfo\([^)]*\)|\d{10}\.\d+"
)


def alike(told: list[Any]) -> list[str]:
    """As texts, without what differs from one run to the next; the types are in them."""
    return [TIMES.sub("TIME", IDS.sub(r"\1_ID", repr(one))) for one in told]


@pytest.mark.parametrize("story", STORIES, ids=lambda s: str(s.__name__))
def test_a_scenario_has_the_same_result_in_every_form(
    service: Open, form: Form, story: Callable[[Face], list[Any]]
) -> None:
    own = service(BRAINS, name="own.db", tools=[deploy])
    expected, told = story(own), story(form())
    assert len(expected) > 8
    for mine, theirs in zip(alike(expected), alike(told), strict=True):
        assert mine == theirs


def test_the_scenarios_call_every_method() -> None:
    told = "".join(inspect.getsource(story) for story in STORIES)
    named = {f"{name}.{method.name}" for name, kind in HANDLERS.items() for method in methods(name, kind)}
    called = {one.removeprefix("talks.") for one in named - {"dead_letters.drop"}}
    assert [one for one in sorted(called) if f"s.{one}(" not in told] == []


def test_what_is_given_is_what_the_service_gives(served: Served, remote: RemoteService) -> None:
    served.service.agents.create("ann", "d", profile="parrot", subscriptions=["a.*"])
    served.service.agents.sleep("ann", "d", until=LATER, wake_on=roost.event("b"))
    schedule = remote.schedules.create("ann", "d", "check", cron="0 9 * * 1-5", zone="Europe/Berlin")
    mail = remote.mail.send("ann", "agent:d", "s", "b", expires_in=60)
    assert remote.agents.get("ann", "d") == served.service.agents.get("ann", "d")
    assert remote.schedules.get("ann", schedule.schedule_id) == schedule == served.service.schedules.list("ann")[0]
    assert remote.mail.get("ann", mail) == served.service.mail.get("ann", mail)
    assert remote.agents.history("ann", "d") == served.service.agents.history("ann", "d")
    assert remote.agents.get("ann", "d").sleep_until == LATER
    assert remote.agents.get("ann", "d").wake_condition == roost.any_of(roost.at(LATER), roost.event("b"))


def test_the_numbers_are_the_services(served: Served, remote: RemoteService) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    served.service.tasks.wait("ann", served.service.tasks.send("ann", "d", "hello"))
    eventually(lambda: served.service.monitor.metrics()["roost_runs_total"].value == 1)
    own, far = served.service.monitor.metrics("ann"), remote.monitor.metrics("ann")
    counted = ("roost_runs_total", "roost_run_seconds", "roost_envelopes_posted_total", "roost_errors_total")
    assert list(far) == list(own)
    assert prometheus.text(far[name] for name in counted) == prometheus.text(own[name] for name in counted)
    assert far["roost_run_seconds"].value == 1


def test_figures_and_edges_are_the_services(served: Served, remote: RemoteService) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    served.service.tasks.wait("ann", served.service.tasks.send("ann", "d", "hello"))
    eventually(lambda: served.service.monitor.metrics()["roost_runs_total"].value == 1)
    drive(served.service.roost.figures.write(all_of_it=True))
    asked: dict[str, Any] = {"since": datetime.now(UTC) - timedelta(hours=1), "until": LATER}
    far = remote.monitor.figures("ann", **asked)
    assert far == served.service.monitor.figures("ann", **asked)
    assert [one.count for one in far.of(FigureName.RUNS)] == [1]
    assert remote.monitor.edges("ann", **asked) == [EdgeCount("user:ann", "agent:ann/d", 1)]


# --- no method is forgotten ------------------------------------------------------------------------------


def test_every_coroutine_of_a_face_is_a_plain_method_and_a_remote_one_with_the_same_parameters() -> None:
    assert set(NAMESPACES) == set(PLAIN)
    remotes = connect("http://localhost:1"), aconnect("http://localhost:1")
    for name, kind in NAMESPACES.items():
        found = methods(name, kind)
        assert found
        for method in found:
            signature = inspect.signature(method.coroutine)
            assert list(signature.parameters)[:2] == ["self", "user_id"]
            assert inspect.signature(getattr(PLAIN[name], method.name)) == signature, method.path
            for remote in remotes:
                assert inspect.signature(getattr(type(getattr(remote, name)), method.name)) == signature


def test_every_coroutine_of_talks_is_a_method_of_all_services_with_the_same_parameters() -> None:
    sides = roost.AgentService, roost.AsyncAgentService, RemoteService, AsyncRemoteService
    found = methods("talks", HANDLERS["talks"])
    assert len(found) >= 9
    for method in found:
        signature = inspect.signature(method.coroutine)
        assert all(inspect.signature(getattr(side, method.name)) == signature for side in sides), method.name


def test_every_face_of_the_service_is_one_of_the_client(served: Served) -> None:
    def faces_of(side: object) -> set[str]:
        return {name for name in vars(side) if name[0] != "_"} - {"roost", "asynchronous", "url"}

    for side in (served.service, served.service.asynchronous, connect(served.url), aconnect(served.url)):
        assert faces_of(side) == set(NAMESPACES)


# --- errors ----------------------------------------------------------------------------------------------


def reject(s: Face) -> object:
    talk = s.create_talk_session("ann", profile="endless", busy="reject")
    s.add_message("ann", talk, "go")
    return s.add_message("ann", talk, "again")


def read_after_a_restored_backup(s: Face) -> object:
    talk = s.create_talk_session("ann", profile="parrot")
    return s.get_messages("ann", talk, after=Cursor(0).encode(TalkLog(talk, "of another generation")))


def kick_oneself(s: Face) -> object:
    meeting = s.meetings.call("ann", "Plans", optional=["agent:d"])
    return s.meetings.kick("ann", meeting, "user:ann")


REFUSED: list[tuple[type[Exception], Callable[[Face], object]]] = [
    (roost.NotFound, lambda s: s.agents.get("ann", "nobody")),
    (roost.NotFound, lambda s: s.tasks.send("ann", "nobody", "x")),
    (roost.Conflict, lambda s: s.agents.create("ann", "d")),
    (roost.Invalid, lambda s: s.agents.create("ann", "a b")),
    (roost.Invalid, lambda s: s.agents.create("ann", "e", profile="nobody")),
    (roost.Invalid, lambda s: s.agents.create("ann", "e", no_such=1)),
    (roost.Invalid, lambda s: s.agents.configure("ann", "d", max_attempts=0)),
    (roost.Invalid, lambda s: s.agents.configure("ann", "d", description=object())),
    (roost.Invalid, lambda s: s.agents.sleep("ann", "d", until=datetime(2030, 1, 1))),
    (roost.Invalid, lambda s: s.agents.sleep("ann", "d", 5, until=LATER)),
    (roost.Invalid, lambda s: s.agents.sleep("ann", "d", float("nan"))),
    (roost.Invalid, lambda s: s.agents.sleep("ann", "d", wake_on="mail")),  # type: ignore[arg-type]
    (roost.Invalid, lambda s: s.agents.get("", "d")),
    (roost.Invalid, lambda s: s.agents.get("ann", 5)),  # type: ignore[arg-type]
    (roost.Invalid, lambda s: s.agents.list("ann", limit=0)),
    (roost.Invalid, lambda s: s.agents.remember("ann", "d", "a\0b")),
    (roost.Invalid, lambda s: s.agents.remember("ann", "d", "x", key="a\nb")),
    (roost.Invalid, lambda s: s.agents.memories("ann", "d", 5)),  # type: ignore[arg-type]
    (roost.NotFound, lambda s: s.agents.memories("ann", "d", before="never")),
    (roost.NotFound, lambda s: s.agents.forget("ann", "nobody", "x")),
    (roost.Invalid, lambda s: s.tasks.send("ann", "d", "a\0b")),
    (roost.Invalid, lambda s: s.tasks.send("ann", "d", "\ud800")),
    (roost.Invalid, lambda s: s.tasks.wait("ann", "task_1", -1)),
    (roost.Invalid, lambda s: s.schedules.create("ann", "d", "x", cron="often")),
    (roost.Invalid, lambda s: s.schedules.create("ann", "d", "x")),
    (roost.Invalid, lambda s: s.events.publish("ann", "e", object())),
    (roost.Invalid, lambda s: s.events.publish("ann", "e", [datetime(2030, 1, 1, tzinfo=UTC)])),
    (roost.Invalid, lambda s: s.events.publish("ann", "e", float("inf"))),
    (roost.Invalid, lambda s: s.events.publish("ann", "a..b")),
    (roost.Busy, reject),
    (roost.StaleCursor, read_after_a_restored_backup),
    (roost.Forbidden, kick_oneself),
    (roost.LimitReached, lambda s: s.agents.create_many("ann", ["e", "f"])),
    (TypeError, lambda s: s.agents.get("ann")),  # type: ignore[call-arg]
    (TypeError, lambda s: s.agents.get("ann", "d", wait=1)),  # type: ignore[call-arg]
]


def test_what_the_service_refuses_every_form_refuses_with_the_same_error(service: Open, form: Form) -> None:
    limits = replace(QUICK, agents_per_user=2)
    for side in (service(BRAINS, name="own.db", limits=limits), form(limits)):
        side.agents.create("ann", "d", start=False)
        before = side.agents.get("ann", "d")
        for number, (error, call) in enumerate(REFUSED):
            with pytest.raises(error) as refused:
                call(side)
            assert type(refused.value) is error, number
            [after] = side.agents.list("ann")
            assert (after.agent_id, after.config, after.state) == ("d", before.config, before.state), number


def test_every_documented_error_is_raised_here() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text().partition("## ")[0]
    documented = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) - {"NoAnswer", "BrainFailed", "ToolFailed"}
    assert {error.__name__ for error, _ in REFUSED} >= documented - {"Unavailable"}  # see test_reconnect.py


def test_the_sentence_of_a_refusal_is_the_services(service: Open, form: Form) -> None:
    sentences = []
    for side in (service(BRAINS, name="own.db"), form()):
        with pytest.raises(roost.Invalid) as refused:
            side.agents.create("ann", "d", max_tasks=1)
        sentences.append(str(refused.value))
    assert sentences[0] == sentences[1]
    assert "'max_tasks'" in sentences[0]


# --- the network -----------------------------------------------------------------------------------------


def test_a_task_whose_answer_was_lost_is_sent_again_and_done_once(served: Served, dial: Dial) -> None:
    served.service.agents.create("ann", "d", start=False)
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1, 20]
        task = remote.tasks.send("ann", "d", "once")
        assert proxy.connections == 3
    assert [one.task_id for one in served.service.tasks.list("ann")] == [task]


def test_a_memory_whose_answer_was_lost_is_remembered_once(served: Served, dial: Dial) -> None:
    served.service.agents.create("ann", "d", start=False)
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1, 20]
        made = remote.agents.remember("ann", "d", "once")
        assert proxy.connections == 3
    assert served.service.agents.memories("ann", "d") == [made]


def test_an_event_whose_answer_was_lost_is_not_published_twice(served: Served, dial: Dial) -> None:
    with failing(served.url) as proxy, dial(proxy.url, served.identity.token) as remote:
        proxy.cuts = [1]
        with pytest.raises(roost.Unavailable, match="cannot reach the server"):
            remote.events.publish("ann", "data_ready")
    assert len(served.service.events.history("ann")) == 1


def test_a_wait_is_made_of_as_many_requests_as_it_takes(
    served: Served, remote: RemoteService, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.service.agents.create("ann", "d", profile="parrot", start=False)
    task = served.service.tasks.send("ann", "d", "at last")
    asked: list[float] = []
    ask = client_http.HttpClient.ask

    async def counted(self: Any, method: str, path: str, user: str | None, body: Any = None, **options: Any) -> Any:
        asked.append(options["query"]["timeout"])
        if len(asked) == 3:
            served.service.agents.start("ann", "d")
            eventually(lambda: served.service.tasks.get("ann", task).is_over)
        return await ask(self, method, path, user, body, **options)

    monkeypatch.setattr(client_http.HttpClient, "ask", counted)
    monkeypatch.setattr(client_faces, "LONGEST_WAIT", 0.05)
    found = remote.tasks.wait("ann", task)
    assert (found.status, found.result) == ("done", "at last ")
    assert asked == [0.05] * 3


def test_a_wait_with_a_timeout_ends_with_it(served: Served, remote: RemoteService) -> None:
    served.service.agents.create("ann", "d", start=False)
    task = served.service.tasks.send("ann", "d", "never")
    assert remote.tasks.wait("ann", task, 0.01).status == "queued"


def test_a_wait_ends_when_the_server_closes(service: Open, dial: Dial) -> None:
    with serving(service()) as served, dial(served.url, served.identity.token) as remote:
        served.service.agents.create("ann", "d", start=False)
        task = served.service.tasks.send("ann", "d", "never")
        served.service.roost.dispatcher.closing = True
        assert remote.tasks.wait("ann", task) == replace(served.service.tasks.get("ann", task))
        served.service.roost.dispatcher.closing = False
