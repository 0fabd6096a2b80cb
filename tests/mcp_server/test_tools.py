"""The tools, as a real client calls them over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from typing import Any

import pytest

import roost
from roost.mcp_server.results import MOST_TEXT
from roost.mcp_server.tools import MOST_AGENTS
from tests.api.conftest import BRAINS
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually
from tests.mcp_server.connection import ERAS, called, connected, refused, run

TOOLS = {"list_agents", "talk", "read_talk", "give_task", "get_task", "send_mail", "read_mail", "publish_event"}


@pytest.mark.parametrize("era", ERAS)
def test_a_client_lists_the_tools_and_talks(served: Served, era: str) -> None:
    async def test() -> None:
        async with connected(served, era=era) as client:
            tools = (await client.list_tools()).tools
            assert {tool.name for tool in tools} == TOOLS
            first = await called(client, "talk", message="hello there", profile="parrot")
            assert (first["status"], first["answer"].strip()) == ("complete", "hello there")
            again = await called(client, "talk", message="and again", talk_id=first["talk_id"])
            assert again["answer"].strip() == "and again"
            read = await called(client, "read_talk", talk_id=first["talk_id"])
            assert [one["text"].strip() for one in read["messages"]] == ["hello there"] * 2 + ["and again"] * 2

    run(test())


def test_every_tool_and_every_argument_is_described(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="parrot")
        async with connected(served) as client:
            for tool in (await client.list_tools()).tools:
                assert tool.title
                assert len(tool.description or "") > 40
                assert all(one.get("description") for one in tool.input_schema["properties"].values()), tool.name
                assert tool.output_schema is not None
                assert '"title"' not in str(tool.input_schema)

    run(test())


def test_each_agent_that_is_not_stopped_has_a_tool_of_its_own(served: Served) -> None:
    async def test() -> None:
        agents = served.service.agents
        agents.create("ann", "daily", profile="parrot", description="Knows what happened today.")
        agents.create("ann", "dotted.name", profile="parrot")
        agents.create("ann", "off", profile="parrot", start=False)
        agents.create("bob", "bobs", profile="parrot")
        async with connected(served) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools.keys() - TOOLS == {"ask_daily"}
            assert "Knows what happened today." in (tools["ask_daily"].description or "")
            first = await called(client, "ask_daily", message="what is new")
            assert first["answer"].strip() == "what is new"
            again = await called(client, "ask_daily", message="and now", talk_id=first["talk_id"])
            assert again["talk_id"] == first["talk_id"]
            other = await called(client, "talk", message="hi", profile="parrot")
            said = await refused(client, "ask_daily", message="hi", talk_id=other["talk_id"])
            assert "is not with the agent 'daily'" in said
            assert await refused(client, "ask_bobs", message="hi") == no_agent("bobs")
            assert (await called(client, "talk", message="dots too", agent="dotted.name"))["status"] == "complete"

    run(test())


def test_the_list_of_tools_is_bounded(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create_many("ann", [f"a{number}" for number in range(MOST_AGENTS + 5)], profile="parrot")
        async with connected(served) as client:
            assert len((await client.list_tools()).tools) == len(TOOLS) + MOST_AGENTS

    run(test())


def no_agent(name: str) -> str:
    return f"there is no agent {name!r}: it was deleted, or it never existed"


def test_agents_and_profiles_are_listed_by_page(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create_many("ann", ["a", "b", "c"], profile="parrot", description="One of three.")
        async with connected(served) as client:
            first = await called(client, "list_agents", limit=2)
            assert [one["agent_id"] for one in first["agents"]] == ["a", "b"]
            assert first["agents"][0]["description"] == "One of three."
            assert {one["name"] for one in first["profiles"]} >= set(BRAINS)
            rest = await called(client, "list_agents", after=first["next_after"])
            assert ([one["agent_id"] for one in rest["agents"]], rest["next_after"]) == (["c"], None)

    run(test())


def test_a_task_is_done_now_or_later_and_once_for_a_key(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="parrot")
        async with connected(served) as client:
            now = await called(client, "give_task", agent="d", prompt="count", wait=30)
            assert (now["status"], now["result"].strip(), now["next_step"]) == ("done", "count", None)
            later = await called(client, "give_task", agent="d", prompt="later", key="k1")
            again = await called(client, "give_task", agent="d", prompt="later", key="k1")
            assert again["task_id"] == later["task_id"]
            over = await called(client, "get_task", task_id=later["task_id"], wait=30)
            assert over["result"].strip() == "later"
            assert len(served.service.tasks.list("ann")) == 2

    run(test())


def test_a_task_that_is_not_finished_says_how_to_ask_for_it(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="endless")
        async with connected(served) as client:
            task = await called(client, "give_task", agent="d", prompt="x", wait=0.2)
            assert task["status"] in ("queued", "running")
            assert task["next_step"] == f"Call get_task with task_id={task['task_id']!r} and a wait."

    run(test())


def test_mail_is_sent_once_for_a_key_and_answers_are_read(served: Served) -> None:
    async def test() -> None:
        served.service.agents.create("ann", "d", profile="parrot")
        async with connected(served) as client:
            letter: dict[str, Any] = {"to": "d", "subject": "Hi", "body": "what is new", "key": "k"}
            sent = await called(client, "send_mail", **letter)
            assert await called(client, "send_mail", **letter) == sent
            eventually(lambda: served.service.mail.unread_count("ann") == 1)
            found = await called(client, "read_mail", mark_read=True)
            assert found["unread"] == 0
            [mail] = found["mail"]
            assert (mail["sender"], mail["body"].strip(), mail["reply_to"]) == (
                "agent:d",
                "what is new",
                sent["mail_id"],
            )
            assert (await called(client, "read_mail"))["mail"] == []
            assert len((await called(client, "read_mail", unread_only=False))["mail"]) == 1
            assert (await called(client, "read_mail", agent="d", unread_only=False))["mail"][0]["subject"] == "Hi"

    run(test())


def test_mail_is_not_marked_as_read_unless_it_is_asked_for(served: Served) -> None:
    async def test() -> None:
        served.service.mail.send("ann", "user:ann", "Hi", "x")
        async with connected(served) as client:
            assert len((await called(client, "read_mail"))["mail"]) == 1
            assert (await called(client, "read_mail"))["unread"] == 1

    run(test())


def test_an_event_is_published(served: Served) -> None:
    async def test() -> None:
        async with connected(served) as client:
            given = await called(client, "publish_event", name="build.failed", data={"n": [1]}, optional=True)
            [event] = served.service.events.history("ann")
            assert (event.event_id, event.name, event.data) == (given["event_id"], "build.failed", {"n": [1]})

    run(test())


# --- answers -------------------------------------------------------------------------------------------


def test_a_repeated_key_continues_the_talk_it_has_started(served: Served) -> None:
    async def test() -> None:
        async with connected(served) as client, connected(served, "bob") as other:
            first = await called(client, "talk", message="once", profile="parrot", key="k")
            again = await called(client, "talk", message="once", profile="parrot", key="k")
            assert again == first
            assert len(served.service.list_sessions("ann")) == 1
            assert len(served.service.get_messages("ann", first["talk_id"]).messages) == 2
            said = await refused(client, "talk", message="twice", profile="parrot", key="k")
            assert said.startswith("the key 'k' was used for a message with another content")
            bobs = await called(other, "talk", message="once", profile="parrot", key="k")
            assert bobs["talk_id"] != first["talk_id"]

    run(test())


@pytest.mark.parametrize("era", ERAS)
def test_an_answer_that_takes_longer_is_returned_so_far_and_the_rest_is_read(served: Served, era: str) -> None:
    async def test() -> None:
        async with connected(served, era=era) as client:
            begun = await called(client, "talk", message="x", profile="endless", wait=0.5)
            assert (begun["status"], begun["answer"]) == ("writing", "part1 ")
            talk = begun["talk_id"]
            assert f"call read_talk with talk_id={talk!r}, after=1 and wait=30" in begun["next_step"]
            served.service.stop("ann", talk)
            rest = await called(client, "read_talk", talk_id=talk, after=1, wait=30)
            assert [(one["text"], one["status"]) for one in rest["messages"]] == [("part1 ", "interrupted")]
            assert (rest["writing"], rest["next_step"]) == (False, None)

    run(test())


@pytest.mark.parametrize("era", ERAS)
def test_progress_has_the_text_as_it_is_written(served: Served, era: str) -> None:
    async def test() -> None:
        seen: list[tuple[float, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, message))

        async with connected(served, era=era) as client:
            asked = {"message": "x", "profile": "slow"}
            result = await client.call_tool("talk", asked, progress_callback=note)
            assert len(seen) > 1
            assert [at for at, _ in seen] == sorted({at for at, _ in seen})
            assert "".join(text or "" for _, text in seen) == result.structured_content["answer"]

    run(test())


def test_an_answer_that_needs_an_approval_is_returned_at_once(served: Served) -> None:
    async def test() -> None:
        async with connected(served) as client:
            asked_at = monotonic()
            answer = await called(client, "talk", message="v2", profile="careful", wait=300)
            assert monotonic() - asked_at < 60
            assert answer["status"] == "waiting_for_approval"
            assert "roost approvals ls" in answer["next_step"]
            [approval] = served.service.approvals.list("ann")
            served.service.approvals.approve("ann", approval.approval_id)
            rest = await called(client, "read_talk", talk_id=answer["talk_id"], after=1, wait=60)
            assert rest["messages"][-1]["text"] == "deployed v2"

    run(test())


async def broken(turn: roost.Turn) -> AsyncIterator[str]:
    yield "so far "
    raise RuntimeError("a secret of the code")


def test_a_failed_answer_has_its_sentence_and_no_traceback(service: Open) -> None:
    async def test(served: Served) -> None:
        async with connected(served) as client:
            result = await client.call_tool("talk", {"message": "x", "profile": "broken"})
            assert result.structured_content["status"] == "failed"
            assert result.structured_content["error"]
            assert "secret of the code" not in str(result)

    with serving(service({"broken": broken})) as served:
        run(test(served))


@pytest.mark.parametrize("era", ERAS)
def test_long_texts_are_cut_so_that_clients_accept_them(served: Served, era: str) -> None:
    async def test() -> None:
        async with connected(served, era=era) as client:
            answer = await called(client, "talk", message="🐦" * 300_000, profile="parrot")
            assert answer["answer"].startswith("🐦" * MOST_TEXT + "… [cut: 300,001 characters in all]")
            talk = (await called(client, "talk", message="x" * 60_000, profile="parrot"))["talk_id"]
            newest = await called(client, "read_talk", talk_id=talk)
            assert ([one["number"] for one in newest["messages"]], newest["more_before"]) == ([2], True)
            older = await called(client, "read_talk", talk_id=talk, before=2)
            assert ([one["number"] for one in older["messages"]], older["more_before"]) == ([1], False)
            for subject in ("first", "second"):
                served.service.mail.send("ann", "user:ann", subject, "x" * 60_000)
            page = await called(client, "read_mail", mark_read=True)
            assert ([one["subject"] for one in page["mail"]], page["more"], page["unread"]) == (["second"], True, 1)
            rest = await called(client, "read_mail", before=page["mail"][0]["mail_id"])
            assert ([one["subject"] for one in rest["mail"]], rest["more"]) == (["first"], False)

    run(test())


def test_history_is_read_by_page(served: Served) -> None:
    async def test() -> None:
        async with connected(served) as client:
            talk = (await called(client, "talk", message="m1", profile="parrot"))["talk_id"]
            for text in ("m2", "m3"):
                await called(client, "talk", message=text, talk_id=talk)
            newest = await called(client, "read_talk", talk_id=talk, limit=2)
            assert ([one["number"] for one in newest["messages"]], newest["more_before"]) == ([5, 6], True)
            older = await called(client, "read_talk", talk_id=talk, limit=10, before=5)
            assert ([one["number"] for one in older["messages"]], older["more_before"]) == ([1, 2, 3, 4], False)

    run(test())
