"""Talks behind requests: temporary ones end with their request, durable ones continue."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import openai
import pytest
from openai.types.chat import ChatCompletionSystemMessageParam

from roost.core.talks.messages import Status
from tests.api.conftest import BRAINS
from tests.api.openai.clients import USER, client_of, said
from tests.api.serving import Served, serving
from tests.conftest import Open, eventually, everything

ENDLESS = {"model": "endless", "messages": said("go")}


def begun(client: openai.OpenAI, *texts: str, model: str = "parrot") -> str:
    """Begin a talk with these messages; its id."""
    answer = client.chat.completions.with_raw_response.create(
        model=model, messages=said(*texts), extra_headers={"Roost-Talk": "new"}
    )
    talk = answer.headers["roost-talk"]
    assert answer.parse().roost_talk == talk  # type: ignore[attr-defined]
    return talk


def contents(served: Served, talk: str) -> list[str]:
    return [message.content for message in everything(served.service, USER, talk)]


def test_a_talk_that_is_begun_stays_and_is_continued_with_the_last_message(
    served: Served, client: openai.OpenAI
) -> None:
    talk = begun(client, "one", "two", "three")
    assert served.service.get_session(USER, talk).title == "three"
    client.chat.completions.create(model="parrot", messages=said("x", "y", "four"), extra_headers={"Roost-Talk": talk})
    assert contents(served, talk) == ["one", "two", "three", "three ", "four", "four "]


def test_the_metadata_names_a_talk_too_also_in_a_stream(served: Served, client: openai.OpenAI) -> None:
    chunks = list(
        client.chat.completions.create(
            model="parrot", messages=said("one"), metadata={"roost_talk": "new"}, stream=True
        )
    )
    [talk] = {chunk.roost_talk for chunk in chunks}  # type: ignore[attr-defined]
    client.chat.completions.create(model="parrot", messages=said("two"), metadata={"roost_talk": talk})
    assert contents(served, talk) == ["one", "one ", "two", "two "]


def test_the_options_of_a_request_become_those_of_its_talk(served: Served, client: openai.OpenAI) -> None:
    talk = begun(client, "one")
    mark = {"Roost-Talk": talk}
    client.chat.completions.create(model="parrot", messages=said("two"), temperature=0.25, extra_headers=mark)
    system: ChatCompletionSystemMessageParam = {"role": "system", "content": "be kind"}
    client.chat.completions.create(model="parrot", messages=[system, *said("three")], extra_headers=mark)
    assert served.service.get_session(USER, talk).options == {"instructions": "be kind", "temperature": 0.25}


def test_a_talk_with_another_model_is_refused_and_stays_as_it_is(served: Served, client: openai.OpenAI) -> None:
    talk = begun(client, "one")
    with pytest.raises(openai.BadRequestError, match="with the model 'parrot'") as refused:
        client.chat.completions.create(model="slow", messages=said("x"), extra_headers={"Roost-Talk": talk})
    assert refused.value.param == "model"
    assert contents(served, talk) == ["one", "one "]


@pytest.mark.parametrize("talk", ["talk_nowhere", "\x7f", "x" * 5000])
def test_an_unknown_talk_is_not_found(client: openai.OpenAI, talk: str) -> None:
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="parrot", messages=said("x"), metadata={"roost_talk": talk})


def test_another_users_talk_looks_like_one_that_never_existed(served: Served, client: openai.OpenAI) -> None:
    answers = []
    hers = served.service.create_talk_session("ann", profile="parrot")
    for talk in (hers, "talk_nowhere"):
        with pytest.raises(openai.NotFoundError) as refused:
            client.chat.completions.create(model="parrot", messages=said("x"), extra_headers={"Roost-Talk": talk})
        answers.append(refused.value.body)
    assert answers[0] == answers[1]
    assert served.service.get_messages("ann", hers).messages == ()


def test_two_marks_that_differ_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="different talks"):
        client.chat.completions.create(
            model="parrot",
            messages=said("x"),
            metadata={"roost_talk": "talk_1"},
            extra_headers={"Roost-Talk": "new"},
        )


def test_a_busy_talk_whose_next_answer_is_not_ours_refuses_the_request(served: Served, client: openai.OpenAI) -> None:
    talk = served.service.create_talk_session(USER, profile="endless", busy="queue")
    served.service.add_message(USER, talk, "first")
    with pytest.raises(openai.ConflictError) as refused:
        client.chat.completions.create(model="endless", messages=said("x"), extra_headers={"Roost-Talk": talk})
    assert refused.value.code == "busy"
    assert "x" not in contents(served, talk)


# --- disconnects ----------------------------------------------------------------------------------


def test_a_client_that_leaves_a_stream_stops_the_answer_of_a_temporary_talk(served: Served) -> None:
    with client_of(served) as client:
        chunks = client.chat.completions.create(model="endless", messages=said("go"), stream=True)
        next(chunk for chunk in chunks if chunk.choices[0].delta.content)
        [talk] = served.service.list_sessions(USER)
        assert talk.running
        chunks.close()
    eventually(lambda: served.service.list_sessions(USER) == [])


def test_a_client_that_does_not_wait_for_a_whole_answer_stops_it(served: Served) -> None:
    with served.command_line() as http, pytest.raises(httpx.ReadTimeout):
        http.post("/v1/chat/completions", json=ENDLESS, timeout=0.5)
    eventually(lambda: served.service.list_sessions(USER) == [])


@pytest.mark.parametrize("streamed", [False, True])
def test_a_client_that_leaves_while_its_talk_is_created_leaves_no_talk(
    served: Served, monkeypatch: pytest.MonkeyPatch, streamed: bool
) -> None:
    talks, has_left = served.service.roost.talks, threading.Event()
    create = talks.create_talk_session

    async def slowly(*args: Any, **options: Any) -> str:
        talk = await create(*args, **options)
        while not has_left.is_set():  # noqa: ASYNC110 — it is set on another thread
            await asyncio.sleep(0.002)
        return talk

    monkeypatch.setattr(talks, "create_talk_session", slowly)
    with served.command_line() as http, pytest.raises(httpx.ReadTimeout):
        http.post("/v1/chat/completions", json={**ENDLESS, "stream": streamed}, timeout=0.5)
    eventually(lambda: len(served.connections) == 0)
    assert len(served.service.list_sessions(USER)) == 1
    has_left.set()
    eventually(lambda: served.service.list_sessions(USER) == [])


def test_an_answer_in_a_durable_talk_continues_without_its_client(served: Served) -> None:
    with served.command_line(**{"Roost-Talk": "new"}) as http:
        with http.stream("POST", "/v1/chat/completions", json={**ENDLESS, "stream": True}) as response:
            talk = response.headers["roost-talk"]
            next(line for line in response.iter_lines() if "part1" in line)
        with served.command_line(**{"Roost-Talk": talk}) as other, pytest.raises(httpx.ReadTimeout):
            other.post("/v1/chat/completions", json=ENDLESS, timeout=0.5)
    first, answer, *_ = everything(served.service, USER, talk)
    assert (first.content, answer.status) == ("go", Status.INTERRUPTED)  # by the second message
    eventually(lambda: contents(served, talk) == ["go", "part1 ", "go", "part1 "])
    assert served.service.get_session(USER, talk).running


def test_an_answer_that_is_stopped_on_the_page_ends_with_an_error(served: Served, client: openai.OpenAI) -> None:
    talk = served.service.create_talk_session(USER, profile="endless")
    chunks = client.chat.completions.create(
        model="endless", messages=said("x"), extra_headers={"Roost-Talk": talk}, stream=True
    )
    next(chunk for chunk in chunks if chunk.choices[0].delta.content)
    served.service.stop(USER, talk)
    with pytest.raises(openai.APIError, match="interrupted") as ended:
        list(chunks)
    assert ended.value.code == "interrupted"


def test_a_talk_that_is_deleted_ends_its_request(served: Served, client: openai.OpenAI) -> None:
    talk = served.service.create_talk_session(USER, profile="endless")
    chunks = client.chat.completions.create(
        model="endless", messages=said("x"), extra_headers={"Roost-Talk": talk}, stream=True
    )
    next(chunk for chunk in chunks if chunk.choices[0].delta.content)
    served.service.delete(USER, talk)
    with pytest.raises(openai.APIError) as ended:
        list(chunks)
    assert ended.value.code == "not_found"


@pytest.mark.parametrize("streamed", [False, True])
def test_a_server_that_stops_deletes_its_temporary_talks(service: Open, streamed: bool) -> None:
    request = {**ENDLESS, "stream": streamed}
    with ThreadPoolExecutor(1) as pool:
        with serving(service(BRAINS)) as served:
            http = served.command_line()
            asked = pool.submit(http.post, "/v1/chat/completions", json=request)
            eventually(lambda: [talk.messages for talk in served.service.list_sessions(USER)] == [2])
        with suppress(httpx.HTTPError):  # the server has stopped
            asked.result()
        http.close()
    assert service(BRAINS).list_sessions(USER) == []
