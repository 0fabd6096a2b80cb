"""Tools of the client: the model may call them, the client runs them and sends the results back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

import roost
from roost.brains.profiles import ProfileRegistry
from roost.service import AgentService
from roost.testing.provider import Call, Provider
from roost.wiring import open_roost
from tests.api.openai.clients import USER, client_of
from tests.api.openai.test_docs import environment, found
from tests.api.serving import Served, serving
from tests.conftest import QUICK

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Return the weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
OTHER: Any = {"type": "function", "function": {"name": "get_time"}}
RESULT = '21 degrees,\nsunny\u2028and\x85dry "today"'
ASKED: Any = [{"role": "user", "content": "How is the weather in Bern?"}]


@roost.tool
async def look_up(word: str) -> str:
    """Return what a word means."""
    return f"{word} is a city"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


@pytest.fixture
def model(provider: Provider, tmp_path: Path) -> Iterator[Served]:
    """A server whose profile `llm` has a model with the OpenAI protocol."""
    profiles = [
        roost.Profile("llm", "llm", model="openai-chat:some-model", base_url=provider.url, tools=("look_up",)),
        roost.Profile("echo", "echo"),
    ]
    shelf = ProfileRegistry(None, profiles)
    opened = open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK, tools=[look_up])
    with AgentService(opened) as service, serving(service) as served:
        yield served


@pytest.fixture
def client(model: Served) -> Iterator[openai.OpenAI]:
    with client_of(model) as one:
        yield one


def returned(call_id: str, text: str) -> Any:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def roles(request: dict[str, Any]) -> list[str]:
    return [message["role"] for message in request["messages"]]


def test_the_model_calls_a_tool_the_client_runs_it_and_the_answer_continues(
    model: Served, provider: Provider, client: openai.OpenAI
) -> None:
    provider.plays("Let me look. ", Call("get_weather", {"city": "Bern"}))
    provider.plays("It is sunny.")
    first = client.chat.completions.create(model="llm", messages=ASKED, tools=[WEATHER])
    choice = first.choices[0]
    assert (choice.finish_reason, choice.message.content) == ("tool_calls", "Let me look. ")
    [call] = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Bern"})
    assert first.usage is not None
    assert first.usage.total_tokens > 0
    offered = {tool["function"]["name"]: tool["function"] for tool in provider.asked[0]["tools"]}
    assert offered["get_weather"]["parameters"]["properties"] == {"city": {"type": "string"}}
    assert "look_up" in offered, "its own tools are there too"

    told: Any = [*ASKED, choice.message.model_dump(exclude_none=True), returned(call.id, RESULT)]
    second = client.chat.completions.create(model="llm", messages=told, tools=[WEATHER])
    assert (second.choices[0].finish_reason, second.choices[0].message.content) == ("stop", "It is sunny.")
    sent = provider.asked[1]["messages"]
    assert roles(provider.asked[1])[-2:] == ["assistant", "tool"]
    assert sent[-1]["content"] == RESULT
    assert sent[-2]["content"] == "Let me look. "
    assert sent[-2]["tool_calls"][0]["id"] == sent[-1]["tool_call_id"]
    assert len(sent[-1]["tool_call_id"]) <= 40, "which providers bound"
    assert model.service.list_sessions(USER) == [], "both talks were temporary"


def test_the_sample_of_the_guide_is_answered(model: Served, provider: Provider) -> None:
    *_, sample = found("py")
    provider.plays(Call("get_weather", {"city": "Bern"}))
    provider.plays("It is warm.")
    command = [sys.executable, "-W", "error", "-c", sample.replace('model="assistant"', 'model="llm"')]
    result = subprocess.run(command, env=environment(model), capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.returncode) == ("It is warm.\n", 0), result.stderr
    assert provider.asked[1]["messages"][-1]["content"] == "21 degrees in Bern"


def test_calls_are_streamed(provider: Provider, client: openai.OpenAI) -> None:
    provider.plays(Call("get_weather", {"city": "Bern"}), Call("get_weather", {"city": "Basel"}))
    chunks = list(client.chat.completions.create(model="llm", messages=ASKED, tools=[WEATHER], stream=True))
    calls = [call for chunk in chunks for one in chunk.choices for call in one.delta.tool_calls or []]
    assert [(call.index, json.loads(str(call.function and call.function.arguments))["city"]) for call in calls] == [
        (0, "Bern"),
        (1, "Basel"),
    ]
    assert len({call.id for call in calls}) == 2
    assert chunks[-1].choices[0].finish_reason == "tool_calls"


def test_a_durable_talk_continues_with_the_results(model: Served, provider: Provider, client: openai.OpenAI) -> None:
    provider.plays(Call("look_up", {"word": "Bern"}), Call("get_weather", {"city": "Bern"}))
    provider.plays("Sunny.")
    headers = {"Roost-Talk": "new"}
    first = client.chat.completions.create(model="llm", messages=ASKED, tools=[WEATHER], extra_headers=headers)
    talk = str(getattr(first, "roost_talk"))  # noqa: B009 - a field of Roost
    [call] = first.choices[0].message.tool_calls or []
    assert call.type == "function"
    assert call.function.name == "get_weather", "its own tool was called by Roost"
    told: Any = [
        *ASKED,
        first.choices[0].message.model_dump(exclude_none=True),
        returned(call.id, "21 degrees"),
    ]
    second = client.chat.completions.create(
        model="llm", messages=told, tools=[WEATHER], extra_headers={"Roost-Talk": talk}
    )
    assert second.choices[0].message.content == "Sunny."
    results = [message for message in provider.asked[1]["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in results] == ["Bern is a city", "21 degrees"]
    provider.plays("Hello.")
    client.chat.completions.create(model="llm", messages=ASKED, extra_headers={"Roost-Talk": talk})
    assert [tool["function"]["name"] for tool in provider.asked[2]["tools"]] == ["look_up"], "and no longer the other"


def test_a_call_without_a_result_is_shown_as_interrupted_if_the_user_says_something_else(
    provider: Provider, client: openai.OpenAI
) -> None:
    provider.plays(Call("get_weather", {"city": "Bern"}))
    provider.plays("Fine.")
    first = client.chat.completions.create(
        model="llm", messages=ASKED, tools=[WEATHER], extra_headers={"Roost-Talk": "new"}
    )
    talk = str(getattr(first, "roost_talk"))  # noqa: B009 - a field of Roost
    said: Any = [{"role": "user", "content": '{"result": "other", "text": "never mind"}'}]
    client.chat.completions.create(model="llm", messages=said, extra_headers={"Roost-Talk": talk})
    sent = provider.asked[1]["messages"]
    assert [message["role"] for message in sent[-3:]] == ["assistant", "tool", "user"]
    assert "has not returned" in sent[-2]["content"]


@pytest.mark.parametrize(
    ("choice", "names", "sent"),
    [
        ("required", {"get_weather", "get_time", "look_up"}, "required"),
        ({"type": "function", "function": {"name": "get_time"}}, {"get_time", "look_up"}, "required"),
        ("none", {"look_up"}, None),
    ],
)
def test_the_choice_of_the_client_reaches_the_model(
    provider: Provider, client: openai.OpenAI, choice: Any, names: set[str], sent: str | None
) -> None:
    provider.plays("ok") if sent is None else provider.plays(Call("get_time", {}))
    client.chat.completions.create(model="llm", messages=ASKED, tools=[WEATHER, OTHER], tool_choice=choice)
    [asked] = provider.asked
    assert {tool["function"]["name"] for tool in asked["tools"]} == names
    assert asked.get("tool_choice") in ((sent,) if sent else (None, "auto"))


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": "all"}, "tools"),
        ({"tools": [{"type": "function", "function": {"name": []}}], "tool_choice": "none"}, "tools"),
        ({"tools": [WEATHER], "tool_choice": "some"}, "tool_choice"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [WEATHER], "model": "echo"}, "tools"),
        ({"tools": [WEATHER], "model": "agent:d"}, "tools"),
        ({"messages": [*ASKED, returned("call_1", "x")]}, "messages"),
        ({"messages": [*ASKED, {"role": "assistant", "tool_calls": "x"}]}, "messages"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages"),
    ],
)
def test_tools_that_cannot_be_used_are_refused_with_the_reason(
    model: Served, provider: Provider, client: openai.OpenAI, given: dict[str, Any], param: str
) -> None:
    asked: Any = {"model": "llm", "messages": ASKED, **given}
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(**asked)
    assert refused.value.param == param
    assert provider.asked == []
    assert model.service.list_sessions(USER) == []


@pytest.mark.parametrize(
    "function",
    [
        {"name": "a b"},
        {"name": 5},
        {"name": "f", "parameters": {"type": "array"}},
        {"name": "f", "parameters": [1]},
        {"name": "f", "description": 5},
        {"name": "f", "description": "x" * 300_000},
    ],
)
def test_a_tool_that_no_model_could_be_offered_is_refused(
    model: Served, client: openai.OpenAI, function: dict[str, Any]
) -> None:
    tools: Any = [{"type": "function", "function": function}]
    with pytest.raises(openai.APIStatusError) as refused:
        client.chat.completions.create(model="llm", messages=ASKED, tools=tools)
    assert refused.value.status_code in (400, 422)
    assert model.service.list_sessions(USER) == []
