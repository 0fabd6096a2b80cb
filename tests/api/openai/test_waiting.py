"""Answers that wait for a person end with an error that names the next step."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import openai
import pytest

import roost
from roost.api.openai import answers
from tests.api.openai.clients import USER, client_of, said
from tests.api.serving import Served, serving
from tests.conftest import Open, everything, settled


def test_a_request_without_a_talk_does_not_wait_for_an_approval(served: Served, client: openai.OpenAI) -> None:
    with pytest.raises(openai.PermissionDeniedError, match="'deploy' needs an approval") as refused:
        client.chat.completions.create(model="careful", messages=said("x"))
    assert refused.value.code == "approval_required"
    assert served.service.list_sessions(USER) == []
    assert served.service.approvals.list(USER) == []


@pytest.mark.parametrize("streamed", [False, True])
def test_a_durable_talk_waits_for_the_approval_that_the_error_names(served: Served, streamed: bool) -> None:
    talk = served.service.create_talk_session(USER, profile="careful")
    with client_of(served, retries=2) as client, pytest.raises(openai.APIError) as refused:
        made = client.chat.completions.create(
            model="careful", messages=said("it"), extra_headers={"Roost-Talk": talk}, stream=streamed
        )
        list(made)
    [asked] = served.service.approvals.list(USER)
    assert refused.value.code == "approval_required"
    assert asked.approval_id in refused.value.message
    assert talk in refused.value.message
    served.service.approvals.approve(USER, asked.approval_id)
    settled(served.service, USER, talk)
    assert [m.content for m in everything(served.service, USER, talk)] == ["it", "deployed it"]


@pytest.mark.parametrize(("how", "command"), [("stopped", "start"), ("paused", "resume")])
def test_a_request_to_an_agent_that_is_not_at_work_says_how_to_start_it(
    served: Served, client: openai.OpenAI, how: str, command: str
) -> None:
    served.service.agents.create(USER, "d", profile="parrot", start=how != "stopped")
    if how == "paused":
        served.service.agents.pause(USER, "d")
    with pytest.raises(openai.ConflictError, match=f"roost agents {command} d") as refused:
        client.chat.completions.create(model="agent:d", messages=said("x"))
    assert refused.value.code == f"agent_{how}"
    assert served.service.list_sessions(USER) == []


def test_an_answer_after_a_silence_is_no_error(service: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    looked = threading.Event()

    async def thoughtful(turn: roost.Turn) -> AsyncIterator[str]:
        """Answer after the request has looked for the reason of the silence."""
        while not looked.is_set():  # noqa: ASYNC110 — it is set on another thread
            await asyncio.sleep(0.002)
        yield turn.text

    monkeypatch.setattr(answers, "LOOK", 0.01)
    opened = service({"thoughtful": thoughtful})
    look = opened.roost.talks.get_session

    async def looking(user_id: str, talk_session_id: str) -> roost.Talk:
        looked.set()
        return await look(user_id, talk_session_id)

    monkeypatch.setattr(opened.roost.talks, "get_session", looking)
    with serving(opened) as served, client_of(served) as client:
        answer = client.chat.completions.create(model="thoughtful", messages=said("x"))
    assert answer.choices[0].message.content == "x"
