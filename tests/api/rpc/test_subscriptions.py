"""Subscriptions: each event once and in order, resumed by a cursor on any other connection."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.rpc.connection import Client, opened
from tests.api.serving import Served
from tests.conftest import eventually


def said(served: Served, text: str, profile: str = "slow", user: str = "ann") -> str:
    talk = served.service.create_talk_session(user, profile=profile)
    served.service.add_message(user, talk, text)
    return talk


def whole(served: Served, talk: str) -> list[str]:
    eventually(lambda: not served.service.get_messages("ann", talk).running)
    return [message.content for message in served.service.get_messages("ann", talk).messages]


class Text:
    """The messages of a talk, assembled from events."""

    def __init__(self) -> None:
        self.messages: dict[int, str] = {}
        self.cursor: str | None = None
        self.done: set[int] = set()

    def add(self, event: dict[str, object]) -> None:
        change = event["event"]
        assert isinstance(change, dict)
        seq = change["message"]["seq"]
        before = "" if change["reset"] else self.messages.get(seq, "")
        assert change["offset"] == len(before), "no gap and nothing twice"
        self.messages[seq] = before + change["text"]
        self.cursor = str(event["cursor"])
        if change["message"]["status"] != "streaming":
            self.done.add(seq)


@pytest.mark.parametrize("chunks", [1, 2, 3, 7, 20, 50])
def test_a_talk_that_is_cut_after_some_chunks_is_read_whole_by_another_connection(served: Served, chunks: int) -> None:
    talk, text = said(served, "go"), Text()
    while len(text.done) < 2:
        with opened(served) as socket:
            client = Client(socket)
            client.call("subscribe", topic="talk", talkSessionId=talk, after=text.cursor)
            for _ in range(chunks):
                text.add(client.event())
                if len(text.done) == 2:
                    break
    assert [text.messages[seq] for seq in sorted(text.messages)] == whole(served, talk)


def test_the_reply_comes_before_the_events_and_nothing_after_the_end(served: Served) -> None:
    talk = said(served, "one two", "parrot")
    whole(served, talk)
    with opened(served) as socket:
        client = Client(socket)
        assert client.call("subscribe", topic="talk", talkSessionId=talk, subscription="mine") == {
            "subscription": "mine"
        }
        assert client.notified == []
        assert client.event()["subscription"] == "mine"
        assert client.ask("subscribe", topic="monitor", subscription="mine")["error"]["code"] == 409
        assert client.call("unsubscribe", subscription="mine") is True
        assert client.ask("unsubscribe", subscription="mine")["error"]["data"] == {"code": "not_found"}
        client.notified.clear()
        served.service.add_message("ann", talk, "more")
        whole(served, talk)
        assert client.call("agent.list") == []
        assert client.notified == []


def test_a_talk_that_is_deleted_ends_its_subscription_with_the_reason(served: Served) -> None:
    talk = said(served, "one", "parrot")
    whole(served, talk)
    with opened(served) as socket:
        client = Client(socket)
        client.call("subscribe", topic="talk", talkSessionId=talk)
        client.event()
        served.service.delete("ann", talk)
        while (event := client.event())["method"] == "event":
            pass
        assert event["error"]["data"] == {"code": "not_found"}


def test_agents_and_all_facts_are_followed_from_now_on_or_after_a_cursor(served: Served) -> None:
    with opened(served) as socket, opened(served, "bob") as other:
        client, stranger = Client(socket), Client(other)
        client.call("subscribe", topic="monitor", subscription="all")
        client.call("subscribe", topic="agents", agentId="b", subscription="b")
        stranger.call("subscribe", topic="monitor")
        for name in ("a", "b"):
            served.service.agents.create("ann", name, profile="parrot")
        served.service.agents.create("bob", "c", profile="parrot")
        found = [client.event() for _ in range(3)]
        made = [(one["subscription"], one["event"]["about"]) for one in found]
        assert sorted(made) == [("all", "ann/a"), ("all", "ann/b"), ("b", "ann/b")]
        assert stranger.event()["event"]["about"] == "bob/c", "and nothing of others"
        first = next(one for one in found if one["event"]["about"] == "ann/a")
    with opened(served) as socket:
        client = Client(socket)
        client.call("subscribe", topic="monitor", after=first["cursor"])
        assert client.event()["event"]["about"] == "ann/b"


def test_a_meeting_is_followed(served: Served) -> None:
    meeting = served.service.meetings.call("ann", "plans", open=True, deadline=60)
    with opened(served) as socket:
        client = Client(socket)
        client.call("subscribe", topic="meeting", meetingId=meeting)
        assert client.event()["event"]["topic"] == "plans"
        served.service.meetings.end("ann", meeting, "done")
        phases = []
        while (event := client.event())["method"] == "event":
            phases.append(event["event"]["phase"])
        assert phases[-1] == "ended"
        assert "error" not in event


@pytest.mark.parametrize(
    "params",
    [
        {"topic": "weather"},
        {"topic": "talk"},
        {"topic": "meeting"},
        {"topic": "talk", "talkSessionId": "x" * 5000},
        {"topic": "monitor", "after": "never"},
        {"topic": 5},
    ],
)
def test_a_subscription_to_nothing_is_refused(served: Served, params: dict[str, object]) -> None:
    with opened(served) as socket:
        assert Client(socket).ask("subscribe", **params)["error"]["code"] == -32602


def test_the_number_of_subscriptions_is_bounded(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        for _ in range(64):
            client.call("subscribe", topic="monitor")
        assert client.ask("subscribe", topic="monitor")["error"]["data"] == {"code": "limit_reached"}


def batch(client: Client, *calls: tuple[str, dict[str, Any]]) -> None:
    client.socket.send(
        json.dumps(
            [
                {"jsonrpc": "2.0", "id": f"b{at}", "method": name, "params": more}
                for at, (name, more) in enumerate(calls)
            ]
        )
    )


def test_subscriptions_that_are_opened_at_once_are_counted_and_each_has_its_name(served: Served) -> None:
    params = {"topic": "mail"}
    with opened(served) as socket:
        client = Client(socket)
        batch(client, *[("subscribe", params | {"subscription": "a"})] * 2)
        assert sorted(one.get("error", {}).get("code", 0) for one in client.receive()) == [0, 409]
        batch(client, *[("subscribe", params)] * 70)
        refused = [one["error"]["data"]["code"] for one in client.receive() if "error" in one]
        assert refused == ["limit_reached"] * 7
        assert client.call("unsubscribe", subscription="a") is True


def test_a_subscription_that_ends_before_its_reply_is_sent_leaves_the_connection_open(served: Served) -> None:
    with opened(served) as socket:
        client = Client(socket)
        batch(
            client,
            ("subscribe", {"topic": "monitor", "subscription": "a"}),
            ("mail.wait", {"after": "0", "timeout": 1}),
        )
        assert client.call("unsubscribe", subscription="a") is True
        assert [one["id"] for one in client.receive()] == ["b0", "b1"]
        assert client.call("agent.list") == []


def test_mail_is_followed_from_now_on_or_after_a_cursor(served: Served) -> None:
    served.service.mail.send("ann", "user:ann", "before", "words")
    with opened(served) as socket:
        client = Client(socket)
        client.call("subscribe", topic="mail")
        served.service.mail.send("bob", "user:bob", "to another", "words")
        for number in (1, 2):
            served.service.mail.send("ann", "user:ann", f"mail {number}", "words")
        first = client.event()
        assert (first["cursor"], first["event"]["subject"]) == ("2", "mail 1")
    with opened(served) as socket:
        client = Client(socket)
        client.call("subscribe", topic="mail", after=first["cursor"])
        assert client.event()["event"]["subject"] == "mail 2"
        assert client.ask("subscribe", topic="mail", after="99")["error"]["data"] == {"code": "stale_cursor"}
