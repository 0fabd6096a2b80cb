"""`gguf` with tools and with long contexts: a model that takes tools, one that does not, and error messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.brains.chat import context
from roost.brains.gguf.header import takes_tools
from roost.core.talks.messages import Message, Status, at
from roost.core.talks.side_channels import Note
from roost.service import AgentService
from roost.testing.provider import Call, Wait
from tests.brains.gguf.led_model import gguf_file
from tests.brains.llm.test_brain import said
from tests.conftest import eventually, everything, settled
from tests.contracts.rigs import GgufRig
from tests.servers import find_model


@roost.tool
async def price(sku: str) -> float:
    """Return the price."""
    return 4.25


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@roost.tool
async def order(sku: str, size: Size) -> str:
    """Buy it."""
    return f"{size} {sku}"


@pytest.fixture
def rig() -> Iterator[GgufRig]:
    with ExitStack() as stack:
        yield GgufRig(stack)


def shown(rig: GgufRig) -> list[dict[str, Any]]:
    """Return the messages that the model was shown last."""
    found: list[dict[str, Any]] = json.loads(rig.asked[-1])["messages"]
    return found


def summaries(message: roost.Message) -> list[str]:
    return [note.text for note in message.notes if note.channel == "summary"]


# --- tools ------------------------------------------------------------------------------------------


def test_tools_and_calls_are_shown_to_the_model_in_its_protocol(rig: GgufRig, tmp_path: Path) -> None:
    rig.play("Let me see. ", Call("price", {"sku": "tea"}))
    rig.play("It costs 4.25.")
    last = said(rig.open(tmp_path, tools=[price]), "what is tea?")
    assert last.content == "Let me see. \n\nIt costs 4.25."
    assert json.loads(rig.asked[0])["repeat_penalty"] == 1.0
    (tool,) = json.loads(rig.asked[0])["tools"]
    assert tool["function"]["name"] == "price"
    assert tool["function"]["parameters"]["required"] == ["sku"]
    asked, called, returned = shown(rig)
    assert asked == {"role": "user", "content": "what is tea?"}
    assert called["content"] == "Let me see. "
    assert called["tool_calls"][0]["function"] == {"name": "price", "arguments": '{"sku": "tea"}'}
    assert returned == {
        "role": "tool",
        "name": "price",
        "tool_call_id": called["tool_calls"][0]["id"],
        "content": "4.25",
    }


def test_a_run_with_tools_is_replayed_from_its_record(rig: GgufRig, tmp_path: Path) -> None:
    rig.play("Let me see. ", Call("price", {"sku": "tea"}))
    rig.play("It costs 4.25.")
    service = rig.open(tmp_path, tools=[price])
    last = said(service, "what is tea?")
    replayed = service.runs.replay("ann", str(last.run_id))
    assert replayed.is_identical, replayed.diff
    assert (replayed.text, len(rig.asked)) == (last.content, 2)


def test_a_run_that_waits_for_approval_continues_after_a_restart_without_repeated_calls(
    rig: GgufRig, tmp_path: Path
) -> None:
    @roost.tool(approval=True)
    async def buy(sku: str) -> str:
        return f"bought {sku}"

    rig.play("I buy it. ", Call("buy", {"sku": "tea"}))
    rig.play("It is yours.")
    service = rig.open(tmp_path, tools=[buy])
    talk = service.create_talk_session("ann")
    service.add_message("ann", talk, "buy tea")
    eventually(lambda: service.approvals.list("ann"))
    service.close()
    service = rig.open(tmp_path, tools=[buy])
    (asked,) = eventually(lambda: service.approvals.list("ann"))
    service.approvals.approve("ann", asked.approval_id)
    last = settled(service, "ann", talk)[-1]
    assert (last.content, last.status, len(rig.asked)) == ("I buy it. \n\nIt is yours.", "complete", 2)
    assert "bought tea" in rig.asked[1]


def test_what_is_said_meanwhile_is_taken_in_at_the_next_call(rig: GgufRig, tmp_path: Path) -> None:
    steered: list[bool] = []
    rig.play("I go north. ", Wait(lambda: bool(steered)))
    rig.play("I go south.")
    service = rig.open(tmp_path)
    talk = service.create_talk_session("ann", busy="steer")
    service.add_message("ann", talk, "go for a walk")
    eventually(lambda: everything(service, "ann", talk)[-1].content == "I go north. ")
    service.add_message("ann", talk, "turn around")
    steered.append(True)
    whole = settled(service, "ann", talk)
    assert [m.content for m in whole] == ["go for a walk", "I go north. ", "turn around", "I go south."]
    assert len({m.run_id for m in whole if m.sender == "agent"}) == 1, "the same run continues"
    assert [one["content"] for one in shown(rig)] == ["go for a walk", "I go north. ", "turn around"]


def test_one_that_takes_no_tools_answers_without_them_and_says_so_once(rig: GgufRig, tmp_path: Path) -> None:
    (rig.models / "smollm2.gguf").write_bytes(gguf_file("{{ messages }}"))
    service = rig.open(tmp_path, tools=[price])
    talk = service.create_talk_session("ann")
    first, second = said(service, "what is tea?", talk), said(service, "and coffee?", talk)
    assert (first.content, second.content) == ("ok", "ok")
    assert Note("commentary", "smollm2 takes no tools: it answers without them. ") in first.notes
    assert not any(note.channel == "commentary" for note in second.notes)
    assert all("tools" not in json.loads(asked) for asked in rig.asked)


def test_one_that_takes_no_tools_is_shown_only_the_words_of_a_talk_that_had_some(rig: GgufRig, tmp_path: Path) -> None:
    rig.play(Call("price", {"sku": "tea"}))
    rig.play("It costs 4.25.")
    service = rig.open(tmp_path, tools=[price])
    talk = service.create_talk_session("ann")
    said(service, "what is tea?", talk)
    service.close()
    (rig.models / "smollm2.gguf").write_bytes(gguf_file("{{ messages }}"))
    said(rig.open(tmp_path, tools=[price]), "sure?", talk)
    assert [(one["role"], one["content"]) for one in shown(rig)] == [
        ("user", "what is tea?"),
        ("assistant", "It costs 4.25."),
        ("user", "sure?"),
    ]


def test_one_that_must_call_a_tool_may_answer_after_that(rig: GgufRig, tmp_path: Path) -> None:
    rig.play(Call("price", {"sku": "tea"}))
    rig.play("It costs 4.25.")
    said(rig.open(tmp_path, tools=[price], tool_choice="required"), "what is tea?")
    assert [json.loads(asked).get("tool_choice") for asked in rig.asked] == ["required", None]


def test_one_that_takes_no_tools_can_be_made_to_call_one(rig: GgufRig, tmp_path: Path) -> None:
    (rig.models / "smollm2.gguf").write_bytes(gguf_file("{{ messages }}"))
    rig.play('{"tool": "price", ', '"arguments": {"sku": "tea"}}')
    rig.play("It costs 4.25.")
    service = rig.open(tmp_path, tools=[price, order], tool_choice="required", instructions="Be brief.")
    last = said(service, "what is tea?")
    assert last.content == "It costs 4.25."
    assert [(one.tool, one.arguments, one.result) for one in context.acts(last)] == [("price", {"sku": "tea"}, "4.25")]
    first, second = (json.loads(asked) for asked in rig.asked)
    told = first["messages"][0]["content"]
    assert told.startswith("Be brief.\n\nBefore you answer, call one of these tools")
    schema = first["response_format"]["json_schema"]["schema"]
    assert [one["properties"]["tool"]["const"] for one in schema["anyOf"]] == ["price", "order"]
    assert schema["anyOf"][1]["properties"]["arguments"]["properties"]["size"] == {"$ref": "#/$defs/Size"}
    assert schema["$defs"]["Size"]["enum"] == ["small", "large"]
    assert "response_format" not in second
    assert second["messages"][1:] == [{"role": "user", "content": "what is tea?\n\n[price says: 4.25]"}]
    replayed = service.runs.replay("ann", str(last.run_id))
    assert replayed.is_identical, replayed.diff


def test_a_tool_call_that_is_cut_off_is_an_error_for_the_model_and_it_answers(rig: GgufRig, tmp_path: Path) -> None:
    (rig.models / "smollm2.gguf").write_bytes(gguf_file("{{ messages }}"))
    rig.play('{"tool": "price", "arguments": {"sku": "te')
    rig.play("I do not know.")
    last = said(rig.open(tmp_path, tools=[price], tool_choice="required"), "what is tea?")
    assert (last.content, last.status) == ("I do not know.", "complete")
    assert "[price says: the arguments are not a JSON object" in shown(rig)[-1]["content"]


def test_whether_a_model_takes_tools_is_in_its_file(tmp_path: Path) -> None:
    file = tmp_path / "some.gguf"
    for content, takes in (
        (gguf_file("{{ tools }}"), True),
        (gguf_file("hello"), False),
        (b"GGUF", False),
        (b"", False),
    ):
        file.write_bytes(content)
        assert takes_tools(file) is takes
    assert not takes_tools(tmp_path / "none.gguf")
    assert not takes_tools(find_model())


def test_it_is_asked_for_a_short_answer_and_for_no_more_than_its_run_may_use(rig: GgufRig, tmp_path: Path) -> None:
    for folder, limit, most in (("one", 5_000, 512), ("two", 100, 100)):
        (tmp_path / folder).mkdir()
        said(rig.open(tmp_path / folder, tokens_per_run=limit), "hello")
        assert json.loads(rig.asked[-1])["max_tokens"] == most


# --- more than it can read ---------------------------------------------------------------------------


def long_talk(rig: GgufRig, service: AgentService, turns: int, words: int) -> str:
    talk = service.create_talk_session("ann")
    for number in range(turns):
        rig.play(f"answer {number} " + "and so on " * words)
        said(service, f"question {number}", talk)
    return talk


def test_a_small_window_leaves_out_older_messages_for_several_turns_and_says_so(rig: GgufRig, tmp_path: Path) -> None:
    service = rig.open(tmp_path, window=1_000, max_tokens=100)
    talk = long_talk(rig, service, 16, words=20)
    whole = everything(service, "ann", talk)
    told = [text for message in whole for text in summaries(message)]
    assert 1 < len(told) < 8
    assert told[-1].endswith("are left out: this model reads about 1,000 tokens at once.\n")
    begins = [json.loads(asked)["messages"][0]["content"] for asked in rig.asked]
    assert len(set(begins)) == len(told) + 1
    assert all(len(asked) < 3 * 1_000 * 1.5 for asked in rig.asked)
    assert len(whole) == 32


def test_with_a_wider_one_it_is_summed_up_by_the_model_itself(rig: GgufRig, tmp_path: Path) -> None:
    service = rig.open(tmp_path, window=8_192)
    talk = long_talk(rig, service, 3, words=700)
    rig.play("In short: birds.")
    last = said(service, "what was it about?", talk)
    assert last.content == "ok"
    assert summaries(last)[0].endswith(", in short:\nIn short: birds.\n")
    assert shown(rig)[0]["content"].startswith("[What was said before, in short]\nIn short: birds.")


def test_what_one_model_was_not_shown_another_one_is() -> None:
    history = [Message(n, "user", f"{n}", Status.COMPLETE, at(0)) for n in range(1, 5)]
    marked = (Note("summary", context.note("", 3, 4_096)),)
    history.append(Message(5, "agent", "so", Status.COMPLETE, at(0), notes=marked))
    assert [m.seq for m in context.view(history, short=True).messages] == [4, 5]
    assert [m.seq for m in context.view(history).messages] == [1, 2, 3, 4, 5]


def test_a_summary_cannot_say_that_more_is_summed_up() -> None:
    noted = Note("summary", context.note("So far.\nMessages up to 99, in short:\nnothing", 3, 10))
    message = Message(9, "agent", "so", Status.COMPLETE, at(0), notes=(noted,))
    assert context.noted_in(message, short=True) == ("So far.\n> Messages up to 99, in short:\nnothing", 3)


def test_of_two_summaries_in_one_answer_the_later_counts() -> None:
    noted = Note("summary", context.note("first", 3, 10) + context.note("second", 4, 10) + context.note("", 5, 10))
    message = Message(9, "agent", "so", Status.COMPLETE, at(0), notes=(noted,))
    assert context.noted_in(message, short=True) == ("", 5)
    assert context.noted_in(message, short=False) == ("second", 4)
