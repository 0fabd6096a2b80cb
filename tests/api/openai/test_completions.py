"""Chat completions with the official client: whole, streamed, and what brains see of a request."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

import roost
from tests.api.openai.clients import USER, client_of, said
from tests.api.serving import Served, serving
from tests.conftest import Open

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000a49444154789c6360000000020001"
    )
).decode()


async def telling(turn: roost.Turn) -> AsyncIterator[str | roost.Chunk]:
    """Yield all that it was given, as JSON, after a thought and a comment."""
    yield roost.Chunk("hm, ", "thinking")
    yield roost.Chunk("one moment", "commentary")
    yield json.dumps(
        {
            "history": [[m.sender, m.content, [a.name for a in m.attachments]] for m in turn.history],
            "new": turn.text,
            "files": [a.name for a in turn.attachments],
            "instructions": turn.profile.instructions,
            "temperature": turn.profile.temperature,
        }
    )


async def counting(turn: roost.Turn) -> AsyncIterator[str]:
    turn.spend(roost.Usage(7, 5))
    yield "counted"


async def silent(turn: roost.Turn) -> AsyncIterator[str]:
    if not turn.text:
        yield "never"


def test_an_answer_comes_as_one_response_and_its_talk_is_gone(served: Served, client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(model="parrot", messages=said("hello there"))
    [choice] = answer.choices
    assert (choice.message.role, choice.message.content) == ("assistant", "hello there ")
    assert (choice.finish_reason, answer.model, answer.object) == ("stop", "parrot", "chat.completion")
    assert served.service.list_sessions(USER) == []


def test_an_answer_comes_as_chunks_and_its_talk_is_gone(served: Served, client: openai.OpenAI) -> None:
    chunks = list(client.chat.completions.create(model="slow", messages=said("go"), stream=True))
    assert served.service.list_sessions(USER) == []
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert [c.choices[0].finish_reason for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert text == "".join(f"wört{number} 🐦 " for number in range(40))
    assert len({chunk.id for chunk in chunks}) == 1
    assert all(chunk.usage is None for chunk in chunks)


def test_a_brain_sees_the_whole_conversation_and_the_options_of_a_request(service: Open) -> None:
    with serving(service({"telling": telling})) as served, client_of(served) as client:
        answer = client.chat.completions.create(
            model="telling",
            temperature=0.5,
            messages=[
                {"role": "system", "content": "be brief"},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {"role": "assistant", "content": "c"},
                {"role": "developer", "content": "be kind"},
                {"role": "user", "content": "d"},
            ],
        )
    message = answer.choices[0].message
    seen = json.loads(message.content or "")
    assert seen["history"] == [["user", "a\nb", []], ["agent", "c", []]]
    assert (seen["new"], seen["instructions"], seen["temperature"]) == ("d", "be brief\n\nbe kind", 0.5)
    assert message.reasoning_content == "hm, one moment"  # type: ignore[attr-defined]


def test_thoughts_are_streamed_beside_the_content(service: Open) -> None:
    with serving(service({"telling": telling})) as served, client_of(served) as client:
        chunks = client.chat.completions.create(model="telling", messages=said("x"), stream=True)
        deltas = [chunk.choices[0].delta for chunk in chunks]
    thoughts = "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas)
    content = "".join(delta.content or "" for delta in deltas)
    assert thoughts == "hm, one moment"
    assert json.loads(content)["new"] == "x"


def test_images_and_files_in_data_urls_are_attachments(service: Open) -> None:
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
    file = {"type": "file", "file": {"filename": "a.txt", "file_data": "data:text/plain;base64,aGVsbG8="}}
    parts = [{"type": "text", "text": "look"}, image, file]
    with serving(service({"telling": telling})) as served, served.command_line() as http:
        messages = [
            {"role": "user", "content": parts},
            {"role": "assistant", "content": None},
            {"role": "user", "content": [image]},
        ]
        answer = http.post("/v1/chat/completions", json={"model": "telling", "messages": messages})
    seen = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert seen["history"] == [["user", "look", ["image-1.png", "a.txt"]], ["agent", "", []]]
    assert seen["files"] == ["image-1.png"]


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_is_that_of_the_models_that_the_answer_called(service: Open, streamed: bool) -> None:
    with serving(service({"counting": counting})) as served, client_of(served) as client:
        if streamed:
            options: openai.types.chat.ChatCompletionStreamOptionsParam = {"include_usage": True}
            *_, last = client.chat.completions.create(
                model="counting", messages=said("x"), stream=True, stream_options=options
            )
            assert last.choices == []
            usage = last.usage
        else:
            usage = client.chat.completions.create(model="counting", messages=said("x")).usage
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (7, 5, 12)


def test_a_brain_that_says_nothing_gives_an_empty_answer(service: Open) -> None:
    with serving(service({"silent": silent})) as served, client_of(served) as client:
        answer = client.chat.completions.create(model="silent", messages=said("x"))
        assert (answer.choices[0].message.content, answer.choices[0].finish_reason) == ("", "stop")
        assert served.service.list_sessions(USER) == []


def test_fields_that_change_nothing_are_ignored(served: Served) -> None:
    request = {
        "model": "parrot",
        "messages": [{"role": "system", "content": ""}, {"role": "user", "content": "hi", "name": "ann"}],
        "n": 1,
        "tools": [],
        "tool_choice": "auto",
        "logprobs": False,
        "stop": None,
        "response_format": {"type": "text"},
        "max_tokens": 5,
        "top_p": 0.5,
        "seed": 1,
        "user": "someone",
        "made_up": {"x": [1, 2]},
    }
    with served.command_line() as http:
        answer = http.post("/v1/chat/completions", json=request)
    assert answer.json()["choices"][0]["message"]["content"] == "hi "


def test_a_browser_on_a_page_of_this_server_may_use_it_too(served: Served) -> None:
    with served.browser("ann") as ann:
        answer = ann.post("/v1/chat/completions", json={"model": "parrot", "messages": said("hi")})
    assert answer.json()["choices"][0]["message"]["content"] == "hi "


def test_many_requests_at_once_are_all_answered_and_leave_nothing(served: Served) -> None:
    with client_of(served) as client, ThreadPoolExecutor(16) as pool:

        def ask(number: int) -> str | None:
            answer = client.chat.completions.create(model="parrot", messages=said("a", "b", f"n{number}"))
            return answer.choices[0].message.content

        answers = list(pool.map(ask, range(100)))
    assert answers == [f"n{number} " for number in range(100)]
    assert served.service.list_sessions(USER) == []
