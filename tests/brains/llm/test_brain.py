"""Brain `llm` beyond the contract: retries, thoughts, continued answers, steering, summaries, and secret keys."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import responses

import roost
from roost.brains.chat import context
from roost.brains.llm import providers
from roost.brains.profiles import ProfileRegistry
from roost.core.talks.messages import Message, Status, at
from roost.core.talks.side_channels import Note
from roost.service import AgentService
from roost.testing.provider import Call, End, Provider, Raw, Refuse, Think, Wait, Whole
from roost.wiring import open_roost
from tests.conftest import QUICK, eventually, everything, settled

KEY = "sk-canary-0123456789"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as one:
        yield one


@pytest.fixture
def opened(provider: Provider, tmp_path: Path) -> Iterator[Any]:
    numbers = count()
    with ExitStack() as stack:

        def start(limits: roost.Limits = QUICK, tools: Any = (), **options: Any) -> AgentService:
            path = tmp_path / str(next(numbers))
            path.mkdir()
            return stack.enter_context(asking(provider, path, limits, tools, **options))

        yield start


@contextmanager
def asking(
    provider: Provider, path: Path, limits: roost.Limits = QUICK, tools: Any = (), **options: Any
) -> Iterator[AgentService]:
    options = {"model": "openai:some-model", "base_url": provider.url, **options}
    shelf = ProfileRegistry(None, [roost.Profile("llm", "llm", **options)])
    with AgentService(open_roost(f"sqlite:///{path / 'roost.db'}", shelf, limits, tools=tools)) as service:
        yield service


def said(service: AgentService, text: str, talk: str | None = None) -> roost.Message:
    talk = talk or service.create_talk_session("ann")
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1]


# --- trying again ---------------------------------------------------------------------------------


def test_a_provider_that_fails_before_the_first_word_is_tried_again(
    provider: Provider, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.runtime.execution.turn_execution.PAUSE", 0.01)
    provider.plays(Refuse(503))
    provider.plays(Refuse(429, headers={"Retry-After": "0.01"}))
    provider.plays("here I am")
    last = said(opened(), "hello")
    assert (last.content, last.status, len(provider.asked)) == ("here I am", "complete", 3)


def test_a_long_rate_limit_fails_with_its_duration_instead_of_waiting(provider: Provider, opened: Any) -> None:
    provider.plays(Refuse(429, "slow down", headers={"Retry-After": "600"}))
    last = said(opened(), "hello")
    assert "rate limit is reached; try again in 10 minutes" in str(last.error)
    assert len(provider.asked) == 1


OPENAI = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "some-model",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "all at once"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
}
ANTHROPIC = {
    "id": "1",
    "type": "message",
    "role": "assistant",
    "model": "some-model",
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "content": [{"type": "text", "text": "all at once"}],
    "usage": {"input_tokens": 7, "output_tokens": 3},
}
CALLING = {
    **OPENAI,
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"id": "1", "type": "function", "function": {"name": "double", "arguments": '{"number": 4}'}}
                ],
            },
        }
    ],
}


@pytest.mark.parametrize(("model", "body"), [("openai:some-model", OPENAI), ("anthropic:some-model", ANTHROPIC)])
def test_a_reply_in_one_piece_is_an_answer(
    provider: Provider, opened: Any, model: str, body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    provider.plays(Whole(body))
    service = opened(model=model)
    last = said(service, "hello")
    assert (last.content, last.status, len(provider.asked)) == ("all at once", "complete", 1)
    tokens = eventually(lambda: dict(service.monitor.metrics()["roost_tokens_total"].values))
    assert tokens == {("llm", "input"): 7.0, ("llm", "output"): 3.0}
    assert said(service, "and streamed").content == "ok"


def test_a_tool_that_is_called_in_one_piece_is_called(provider: Provider, opened: Any) -> None:
    @roost.tool
    async def double(number: int) -> int:
        """Twice as much."""
        return 2 * number

    provider.plays(Whole(CALLING))
    provider.plays(Whole(OPENAI))
    last = said(opened(tools=[double]), "hello")
    assert (last.content, last.status) == ("all at once", "complete")
    assert provider.asked[1]["messages"][-1]["content"] == "8"


def test_json_that_is_no_answer_fails_as_the_providers(
    provider: Provider, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.runtime.execution.turn_execution.PAUSE", 0.001)
    for _ in range(9):
        provider.plays(Whole({"error": {"message": "no"}}))
    last = said(opened(), "hello")
    assert last.status == "failed"
    assert "could not be reached or took too long" in str(last.error)


@pytest.mark.parametrize("broken", [b"data: {not json\n\n", b'data: {"choices": 7}\n\n', b"data: []\n\n"])
def test_an_unreadable_reply_is_a_failure_of_the_provider_and_keeps_what_was_said(
    provider: Provider, opened: Any, broken: bytes
) -> None:
    provider.plays("half ", Raw(broken))
    service = opened()
    last = said(service, "hello")
    assert (last.content, last.status) == ("half ", "failed")
    assert "could not be reached or took too long" in str(last.error)
    assert said(service, "again").status == "complete"


def test_a_provider_that_falls_silent_is_given_up_after_the_patience(provider: Provider, opened: Any) -> None:
    held = threading.Event()
    provider.plays("one ", Wait(held.is_set))
    last = said(opened(patience=2.0), "hello")
    held.set()
    assert (last.content, last.status) == ("one ", "failed")
    assert "could not be reached or took too long" in str(last.error)


def test_a_refused_request_names_what_to_check(provider: Provider, opened: Any) -> None:
    provider.plays(Refuse(400, "temperature is not supported", "unsupported_value"))
    last = said(opened(temperature=0.5), "hello")
    assert "the provider rejects the request: check the profile and the log" in str(last.error)
    assert len(provider.asked) == 1


def test_an_answer_ended_by_a_content_filter_is_a_refusal(provider: Provider, opened: Any) -> None:
    provider.plays("I can", End("content_filter"))
    last = said(opened(), "hello")
    assert (last.content, last.status) == ("I can", "failed")
    assert "The model refused to answer this" in str(last.error)


def test_a_provider_that_fails_five_times_is_not_called_while_its_circuit_is_open(
    provider: Provider, opened: Any
) -> None:
    service = opened(roost.Limits(drain=0.5, breaker_pause=600))
    for _ in range(5):
        provider.plays(Refuse(401, "no"))
        assert "refused the key" in str(said(service, "hello").error)
    assert "keeps failing and is paused" in str(said(service, "hello").error)
    assert len(provider.asked) == 5
    assert "openai at 127.0.0.1" in str(service.health().problem)
    (breaker,) = service.roost.context.breakers._breakers.values()
    breaker.retry_at = 0.0  # its pause is over
    provider.plays(Refuse(401, "no"))
    assert "refused the key" in str(said(service, "are you there?").error)
    assert "keeps failing and is paused" in str(said(service, "hello").error)
    breaker.retry_at = 0.0
    assert said(service, "are you there?").status == "complete"
    assert said(service, "and now?").status == "complete"
    assert service.health().problem is None


def test_an_agent_waits_for_an_open_circuit_and_then_continues(provider: Provider, opened: Any) -> None:
    service = opened(roost.Limits(drain=0.5, breaker_pause=600))
    for _ in range(5):
        provider.plays(Refuse(401, "no"))
        said(service, "hello")
    service.agents.create("ann", "d")
    task = service.tasks.send("ann", "d", "count the birds")
    assert (service.tasks.get("ann", task).status, len(provider.asked)) == ("queued", 5)
    provider.plays("Three birds.", End(read=70, said=7))
    (breaker,) = service.roost.context.breakers._breakers.values()
    breaker.retry_at = 0.0  # its pause is over
    assert service.tasks.wait("ann", task, timeout=30).result == "Three birds."
    assert len(provider.asked) == 6
    run = service.agents.inspect("ann", "d").runs[0]
    assert (run.model, run.input_tokens, run.output_tokens) == ("openai:some-model", 70, 7)


# --- thinking, going on, being steered ------------------------------------------------------------


@pytest.mark.parametrize("model", ["openai:some-model", "anthropic:some-model"])
def test_thoughts_stand_beside_the_answer_and_its_cost_is_known(provider: Provider, opened: Any, model: str) -> None:
    provider.plays(Think("two and "), Think("two"), "Four.", End(read=120, said=30))
    service = opened(model=model)
    last = said(service, "2 + 2?")
    assert (last.content, last.notes) == ("Four.", (Note("thinking", "two and two"),))
    metrics = service.monitor.metrics
    eventually(lambda: metrics()["roost_tokens_total"].values == {("llm", "input"): 120, ("llm", "output"): 30})


def test_what_the_profile_says_reaches_the_model(provider: Provider, opened: Any) -> None:
    said(opened(instructions="Be brief.", temperature=0.5, max_tokens=77, key=None), "hello")
    body = provider.asked[0]
    assert (body["model"], body["temperature"]) == ("some-model", 0.5)
    assert 77 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert [m["content"] for m in body["messages"]] == ["Be brief.", "hello"]


def test_an_answer_cut_off_by_its_length_continues_in_the_same_message(provider: Provider, opened: Any) -> None:
    provider.plays("one ", End("length"))
    provider.plays("two")
    last = said(opened(), "count")
    assert (last.content, last.status) == ("one two", "complete")
    assert "Go on exactly where you stopped" in provider.asked[1]["messages"][-1]["content"]


def test_an_endless_answer_is_cut_off_at_its_step_limit(provider: Provider, opened: Any) -> None:
    for _ in range(5):
        provider.plays("on and ", End("length"))
    last = said(opened(steps=3), "go on")
    assert (last.content, last.status, len(provider.asked)) == ("on and on and on and ", "failed", 3)
    assert "used all its steps" in str(last.error)


def test_a_run_that_may_use_few_tokens_asks_for_no_more(provider: Provider, opened: Any) -> None:
    provider.plays("one ", End("length", read=10, said=5))
    last = said(opened(tokens_per_run=15), "hello")
    assert 15 in (provider.asked[0].get("max_tokens"), provider.asked[0].get("max_completion_tokens"))
    assert (last.content, last.status, len(provider.asked)) == ("one ", "failed", 1)
    assert "has used up its tokens" in str(last.error)


def test_what_is_said_meanwhile_is_taken_in_at_the_next_call(provider: Provider, opened: Any) -> None:
    held = threading.Event()
    provider.plays("I go north. ", Wait(held.is_set))
    provider.plays("I go south.")
    service = opened()
    talk = service.create_talk_session("ann", busy="steer")
    service.add_message("ann", talk, "go for a walk")
    eventually(lambda: everything(service, "ann", talk)[-1].content == "I go north. ")
    service.add_message("ann", talk, "turn around")
    held.set()
    whole = settled(service, "ann", talk)
    assert [m.content for m in whole] == ["go for a walk", "I go north. ", "turn around", "I go south."]
    assert len({m.run_id for m in whole if m.sender == "agent"}) == 1, "the same run continues"
    assert [m["content"] for m in provider.asked[1]["messages"]] == ["go for a walk", "I go north. ", "turn around"]
    assert len(provider.asked) == 2


# --- tools ----------------------------------------------------------------------------------------


def test_several_tools_are_called_at_once_and_a_failure_reaches_the_model(provider: Provider, opened: Any) -> None:
    here = threading.Barrier(2, timeout=10)

    @roost.tool
    def good(n: int) -> int:
        here.wait()
        return n + 1

    @roost.tool
    def bad() -> int:
        here.wait()
        raise RuntimeError("it broke")

    provider.plays(
        Call("good", {"n": 41}, "a"), Call("bad", {}, "b"), Call("good", "{oops", "c"), Call("gone", {}, "d")
    )
    provider.plays("done")
    last = said(opened(tools=[good, bad]), "go")
    assert (last.content, last.status) == ("done", "complete")
    told = {m["tool_call_id"]: m["content"] for m in provider.asked[1]["messages"] if m["role"] == "tool"}
    assert told["a"] == "42"
    assert "not a JSON object" in told["c"]
    assert set(told) == {"a", "b", "c", "d"}


def test_in_a_talk_with_an_agent_a_model_consults_another_agent(provider: Provider, tmp_path: Path) -> None:
    model = roost.Profile("llm", "llm", model="openai:some-model", base_url=provider.url)
    shelf = ProfileRegistry(None, [model, roost.Profile("echo", "echo")])
    provider.plays(Call("ask", {"to": "agent:clerk", "text": "how much?"}, "a"))
    provider.plays("it is asked for")
    with AgentService(open_roost(f"sqlite:///{tmp_path / 'roost.db'}", shelf, QUICK)) as service:
        service.agents.create("ann", "d", profile="llm")
        service.agents.create("ann", "clerk", profile="echo")
        talk = service.create_talk_session("ann", agent="d")
        last = said(service, "what does tea cost?", talk)
        assert (last.content, last.status) == ("it is asked for", "complete")
        [told] = [m["content"] for m in provider.asked[1]["messages"] if m["role"] == "tool"]
        assert told == "how much?"
        [run] = service.runs.list("ann", talk=talk)
        assert service.runs.replay("ann", run.run_id).is_identical


def test_one_that_must_call_a_tool_may_answer_after_that(provider: Provider, opened: Any) -> None:
    @roost.tool
    async def look() -> str:
        return "seen"

    for tools, choices in (([look], ["required", "auto"]), ([], [None])):
        if tools:
            provider.plays(Call("look", {}))
        provider.plays("done")
        before = len(provider.asked)
        assert said(opened(tools=tools, tool_choice="required"), "go").content == "done"
        assert [asked.get("tool_choice") for asked in provider.asked[before:]] == choices


def test_the_time_in_which_a_person_is_asked_does_not_count(provider: Provider, opened: Any) -> None:
    @roost.tool(approval=True)
    async def buy() -> str:
        return "bought"

    provider.plays(Call("buy", {}))
    provider.plays("It is yours.")
    service = opened(tools=[buy], seconds_per_run=3.0)
    talk = service.create_talk_session("ann")
    service.add_message("ann", talk, "buy it")
    asked = eventually(lambda: service.approvals.list("ann"))[0]
    enough = time.monotonic() + 3.2
    eventually(lambda: time.monotonic() > enough)
    service.approvals.approve("ann", asked.approval_id)
    last = settled(service, "ann", talk)[-1]
    assert (last.content, last.status) == ("It is yours.", "complete")


# --- more than a model can read -------------------------------------------------------------------


def test_a_talk_that_grows_beyond_the_window_is_summed_up_and_the_log_stays(provider: Provider, opened: Any) -> None:
    service = opened(window=2_000)
    talk = service.create_talk_session("ann")
    summaries = 0
    for number in range(12):
        provider.plays(f"answer {number} " + "and so on " * 40)
        provider.plays("Here it is.")
        said(service, f"question {number} " + "which is long " * 20, talk)
        provider.forget()
        shown = json.dumps(provider.asked[-1])
        assert len(shown) < 3 * 2_000 * 1.2
        assert f"question {number}" in shown
        summaries += any("Sum up the conversation" in json.dumps(body) for body in provider.asked)
        provider.asked.clear()
    assert 1 < summaries < 8
    whole = everything(service, "ann", talk)
    assert len(whole) == 24
    assert sum(note.channel == "summary" for m in whole for note in m.notes) == summaries
    assert all(f"question {n}" in whole[2 * n].content for n in range(12))


def test_what_tools_gave_earlier_in_a_run_makes_room_for_what_they_give_now(provider: Provider, opened: Any) -> None:
    @roost.tool
    async def read(page: int) -> str:
        return f"page {page}: " + f"word{page} " * 400

    provider.plays(Call("read", {"page": 1}), End("tool_calls", read=100))
    provider.plays(Call("read", {"page": 2}), End("tool_calls", read=1_100))
    provider.plays("Both are full of words.")
    service = opened(window=2_000, tools=[read])
    last = said(service, "what is in them?")
    assert (last.content, last.status) == ("Both are full of words.", "complete")
    first, second = (json.dumps(body) for body in provider.asked[1:])
    assert first.count("word1") == 400
    assert ("left out to make room" in second, second.count("word1"), second.count("word2")) == (True, 0, 400)


def test_a_provider_that_finds_it_too_long_is_asked_again_with_less(provider: Provider, opened: Any) -> None:
    service = opened()
    talk = service.create_talk_session("ann")
    for number in range(4):
        provider.plays(f"answer {number} " + "and so on " * 60)
        said(service, f"question {number}", talk)
    provider.plays(Refuse(400, "too long", "context_length_exceeded"))
    last = said(service, "the last one", talk)
    assert (last.content, last.status) == ("ok", "complete")
    assert last.notes[0].channel == "summary"
    assert "[What was said before, in short]\\nok" in json.dumps(provider.asked[-1])
    assert "answer 0" not in json.dumps(provider.asked[-1])


def message(seq: int, sender: str, content: str, **more: Any) -> Message:
    return Message(seq, sender, content, Status.COMPLETE, at(0), **more)


@given(st.lists(st.tuples(st.booleans(), st.text(max_size=400)), max_size=40), st.integers(1_000, 4_000))
def test_what_is_summed_up_and_what_stays_is_all_there_was(talk: list[tuple[bool, str]], window: int) -> None:
    history = [message(n, "agent" if agent else "user", text) for n, (agent, text) in enumerate(talk, start=1)]
    shown = context.view(history)
    older, kept = context.parted(shown, window)
    assert (*older, *kept) == tuple(history)
    assert sum(map(context.tokens_of, kept)) <= window * context.KEPT
    assert not kept or kept[0].sender == "user"
    assert [m for portion in context.portions(older, window) for m in portion] == list(older)
    if older:
        noted = Note("summary", context.note("in short", older[-1].seq, window))
        again = context.view([*history, message(len(history) + 1, "agent", "so", notes=(noted,))])
        assert (again.summary, again.covered) == ("in short", older[-1].seq)
        assert again.messages[:-1] == kept


# --- keys -----------------------------------------------------------------------------------------


def test_without_a_key_it_says_which_one_to_set(opened: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    last = said(opened(base_url=None), "hello")
    assert "set OPENAI_API_KEY in the environment or in secrets.toml, and start Roost again" in str(last.error)


def test_what_takes_long_to_build_is_built_before_the_first_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    providers.prepare(roost.Profile("mine", "llm", model="openai:some-model"))
    for event in (responses.ResponseCreatedEvent, responses.ResponseTextDeltaEvent, responses.ResponseCompletedEvent):
        assert event.__pydantic_complete__, "else it is built with the first chunk, while the loop stands still"


@pytest.mark.parametrize(
    ("model", "advice"), [("gpt", "provider:name"), ("nobody:x", "'nobody' is not a known provider")]
)
def test_an_unknown_provider_is_refused(opened: Any, model: str, advice: str) -> None:
    assert advice in str(said(opened(model=model, base_url=None), "hello").error)


def test_the_key_is_sent_to_its_own_provider_only(
    provider: Provider, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("MY_KEY", "sk-mine-0123456789")
    said(opened(), "hello")
    said(opened(key="MY_KEY"), "hello")
    assert [headers["authorization"] for headers in provider.headers] == ["Bearer none", "Bearer sk-mine-0123456789"]


@pytest.mark.parametrize("model", ["openai:some-model", "anthropic:some-model"])
def test_a_key_repeated_by_the_provider_is_shown_nowhere(
    provider: Provider, opened: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, model: str
) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    provider.plays(Refuse(401, f"the key {KEY} is wrong", headers={"X-Key": KEY}))
    caplog.set_level(logging.INFO)
    service = opened(key="MY_KEY", model=model)
    said(service, "hello")
    assert KEY in str(provider.headers)
    shown = [*everything(service, "ann", service.list_sessions("ann")[0].talk_session_id)]
    assert KEY not in str(shown)
    formatted = [logging.Formatter().format(record) + str(vars(record)) for record in caplog.records]
    assert any("a run has failed" in text for text in formatted)
    assert not [text for text in formatted if KEY in text]


# --- to the byte ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ["openai:some-model", "anthropic:some-model"])
def test_however_a_provider_cuts_a_text_it_is_the_same_to_the_byte(tmp_path: Path, model: str) -> None:
    texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=60)
    with Provider() as provider, asking(provider, tmp_path, model=model) as service:

        @given(texts.filter(str.strip), st.lists(st.integers(0, 60), max_size=6), st.integers(1, 500))
        @settings(max_examples=40)
        def check(text: str, cuts: list[int], at_once: int) -> None:
            provider.bytes_at_once = at_once
            ends = sorted({min(cut, len(text)) for cut in cuts} | {0, len(text)})
            provider.plays(*(text[a:b] for a, b in pairwise(ends)))
            last = said(service, "go")
            assert (last.content, last.status) == (text, "complete")

        check()


# --- on record ------------------------------------------------------------------------------------


def test_a_run_is_replayed_from_its_record_without_the_provider(
    provider: Provider, opened: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    @roost.tool
    async def price(sku: str) -> float:
        return 4.25

    monkeypatch.setenv("MY_KEY", KEY)
    provider.plays(Think("hm"), "Let me see.", Call("price", {"sku": "tea"}))
    provider.plays("It costs 4.25.")
    service = opened(tools=[price], key="MY_KEY", instructions="Be brief.")
    last = said(service, "what is tea?")
    monkeypatch.delenv("MY_KEY")
    replayed = service.runs.replay("ann", str(last.run_id))
    assert len(provider.asked) == 2
    assert replayed.is_identical, replayed.diff
    assert replayed.text == last.content


# --- files of messages -----------------------------------------------------------------------------------

PNG = b"\x89PNG\r\n\x1a\n some pixels"


def send_files(service: AgentService, talk: str, text: str, **files: bytes) -> None:
    ids = [service.add_attachment("ann", name, data).attachment_id for name, data in files.items()]
    service.add_message("ann", talk, text, attachments=ids)
    settled(service, "ann", talk)


@pytest.mark.parametrize("vision", [True, False])
def test_a_model_gets_texts_and_if_it_can_see_images_now_and_in_the_history(
    provider: Provider, opened: Any, vision: bool
) -> None:
    service = opened(vision=vision)
    talk = service.create_talk_session("ann", profile="llm")
    for _ in range(2):
        provider.plays("seen")
    send_files(service, talk, "", notes="# Grüße\nmillet".encode(), bird=PNG, tape=b"\0\1")
    send_files(service, talk, "and this?", long=b"x" * 200_000)
    first, second = (json.dumps(request, ensure_ascii=False) for request in provider.asked)
    picture = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
    for sent in (first, second):
        assert r"## File: notes\n\n# Grüße\nmillet" in sent
        assert "[attached file, not shown: tape (application/octet-stream, 2 bytes)]" in sent
        assert (picture in sent, "[image: bird]" in sent) == (vision, vision)
        assert ("[attached file, not shown: bird (image/png, 20 bytes)]" in sent) == (not vision)
    assert r"and this?\n\n## File: long\n\nxxx" in second
    assert "characters are left out" in second
    assert 20_000 < second.count("x") < 30_000  # a share of the window
