"""Methods over JSON-RPC: those of the service by noun and verb, and those of existing clients."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from roost.api.rpc.methods import rpc_name
from roost.protocol.namespaces import methods
from roost.sync import HANDLERS
from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served
from tests.conftest import eventually

ALL = [method for name, kind in HANDLERS.items() for method in methods(name, kind)]


def test_the_examples_of_existing_clients_do_what_they_say(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        config = {"checkMailInterval": 30, "maxConcurrentTasks": 5, "wakeOnPriority": "high"}
        made = client.call("async.createAgent", agentId="d", config=config | {"profile": "parrot"})
        assert (made["agentId"], made["state"]) == ("d", "idle")
        kept = served.service.agents.get("ann", "d").config
        assert (kept.check_mail_interval, kept.max_concurrent_tasks, kept.wake_on_priority) == (30, 5, "high")
        schedule = client.call(
            "async.scheduleTask", agentId="d", task="Check system health and report issues", schedule="*/15 * * * *"
        )
        [found] = served.service.schedules.list("ann")
        assert (found.schedule_id, found.prompt) == (schedule["scheduleId"], "Check system health and report issues")
        client.call(
            "async.sleepAgent",
            agentId="d",
            untilTime="2024-01-01T09:00:00Z",
            wakeEvents=["urgent_mail", "system_alert"],
            wakeOnMailPriority="high",
        )
        eventually(lambda: served.service.agents.get("ann", "d").state == "idle")  # a time in the past wakes at once
        client.call("async.unscheduleTask", scheduleId=schedule["scheduleId"])
        assert served.service.schedules.list("ann") == []


def test_an_agent_sleeps_until_an_event_and_its_states_are_shown(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        made = client.call("async.createAgent", agentId="d", config={"profile": "parrot"}, autoStart=False)
        assert made["state"] == "stopped"
        client.call("async.startAgent", agentId="d")
        until = datetime(2090, 1, 1, tzinfo=UTC)
        client.call("async.sleepAgent", agentId="d", untilTime=until.isoformat(), wakeEvents=["system_alert"])
        state = client.call("async.getAgentStates")["agents"]["d"]
        wanted = {"state", "queueDepth", "currentTask", "sleepUntil", "wakeEvents", "errorCount", "lastActive"}
        assert wanted <= state.keys()
        assert (state["state"], state["queueDepth"], state["wakeEvents"]) == ("sleeping", 0, ["system_alert"])
        assert datetime.fromisoformat(state["sleepUntil"]) == until
        assert client.call("async.publishEvent", event="system_alert", data={"disk": 3}, priority="high")["eventId"]
        eventually(lambda: client.call("async.getAgent", agentId="d")["state"] == "idle")
        client.call("async.sleepAgent", agentId="d", durationSeconds=3600)
        client.call("async.wakeAgent", agentId="d")
        eventually(lambda: client.call("async.getAgent", agentId="d")["state"] == "idle")
        assert client.call("async.pauseAgent", agentId="d")["paused"] is True
        assert client.call("async.resumeAgent", agentId="d")["paused"] is False
        client.call("async.stopAgent", agentId="d")
        eventually(lambda: served.service.agents.get("ann", "d").state == "stopped")
        assert client.call("async.deleteAgent", agentId="d") is None
        assert client.call("async.getAgentStates") == {"agents": {}}


def test_a_task_and_mail_are_sent_and_a_task_is_cancelled(served: Served) -> None:
    served.service.agents.create("ann", "d", profile="parrot")
    served.service.agents.create("ann", "off", profile="parrot", start=False)
    with opened(served) as socket:
        client = Client(socket)
        task = client.call("async.sendTask", agentId="d", prompt="one two")["taskId"]
        assert client.call("task.wait", taskId=task, timeout=15)["result"] == "one two "
        waiting = client.call("async.sendTask", agentId="off", prompt="never")["taskId"]
        assert client.call("async.cancelTask", taskId=waiting)["status"] == "cancelled"
        mail = client.call("async.sendMail", to="agent:d", subject="hi", body="there")["mailId"]
        assert served.service.mail.get("ann", mail).subject == "hi"
        bad = client.ask("async.sleepAgent", agentId="d", untilTime="tomorrow")["error"]
        assert bad["message"] == "untilTime: must be a time in ISO 8601, such as 2030-01-01T09:00:00Z"


def test_a_talk_is_held(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        talk = client.call("talk.createTalkSession", profile="parrot")["talkSessionId"]
        assert client.call("talk.addMessage", talkSessionId=talk, content="one two", key="k")["seq"] == 1
        assert client.call("talk.addMessage", talkSessionId=talk, content="one two", key="k")["seq"] == 1
        page = eventually(
            lambda: (
                (page := client.call("talk.getMessages", talkSessionId=talk))["messages"][-1]["status"] == "complete"
                and len(page["messages"]) == 2
                and page
            )
        )
        assert isinstance(page, dict)
        assert page["messages"][1]["content"] == "one two "
        assert client.call("talk.delete", talkSessionId=talk) is None


def test_every_method_of_the_service_can_be_called(served: Served) -> None:
    assert len({rpc_name(method) for method in ALL}) == len(ALL)
    with opened(served) as socket:
        client = Client(socket)
        for method in ALL:
            found = client.ask(rpc_name(method), **{"no such": 1})
            assert found["error"]["code"] == -32602, rpc_name(method)


def test_the_things_of_another_user_are_not_found(served: Served) -> None:
    served.service.agents.create("bob", "d", profile="parrot")
    talk = served.service.create_talk_session("bob", profile="parrot")
    with opened(served) as socket:
        client = Client(socket)
        for asked in (
            client.ask("async.getAgent", agentId="d"),
            client.ask("agent.get", agentId="d"),
            client.ask("talk.getMessages", talkSessionId=talk),
            client.ask("subscribe", topic="talk", talkSessionId=talk),
        ):
            assert asked["error"]["data"] == {"code": "not_found"}


def test_a_request_can_be_cancelled_and_others_are_answered_meanwhile(served: Served) -> None:
    served.service.agents.create("ann", "off", profile="parrot", start=False)
    task = served.service.tasks.send("ann", "off", "never")
    with opened(served) as socket:
        client = Client(socket)
        waiting = client.send("task.wait", taskId=task)
        assert client.call("agent.get", agentId="off")["agentId"] == "off", "not delayed"
        assert client.call("$/cancelRequest", id=waiting) is True
        cancelled = client.until(lambda one: one.get("id") == waiting) if not client.notified else client.notified.pop()
        assert (cancelled["id"], cancelled["error"]["code"]) == (waiting, -32800)
        assert client.call("$/cancelRequest", id=waiting) is False
        assert client.ask("$/cancelRequest")["error"]["code"] == -32602
    assert served.service.tasks.get("ann", task).status == "queued"


@pytest.mark.parametrize("given", [{}, {"agentId": 3}, {"agentId": "x" * 3000}, {"agentId": "d", "config": {"no": 1}}])
def test_a_bad_agent_is_refused_and_none_is_made(served: Served, given: dict[str, Any]) -> None:
    with opened(served) as socket:
        found = Client(socket).ask("async.createAgent", **given)
        assert found["error"]["code"] == -32602, json.dumps(found)
    assert served.service.agents.list("ann") == []
