"""Logs: one JSON object a line, with everything but the secrets."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from roost import log
from roost.core.journal.steps import canonical
from roost.core.values.secrets import HIDDEN, Redactor
from roost.log_floods import KEPT, MOST_KINDS, WINDOW, FloodFilter
from tests.outbound.receiver import receiving


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, as it was before at the end."""
    logger = logging.getLogger()
    handlers, level = list(logger.handlers), logger.level
    logger.handlers = []
    yield logger
    for handler in logger.handlers:
        handler.close()
    logger.handlers, logger.level = handlers, level
    logging.captureWarnings(False)


def formatted(message: str, *arguments: object, error: BaseException | None = None, **extra: Any) -> dict[str, Any]:
    info = (type(error), error, error.__traceback__) if error else None
    record = logging.getLogger("roost.test").makeRecord(
        "roost.test", logging.ERROR, "file", 1, message, arguments, info, extra=extra
    )
    line = log.JsonFormatter(Redactor(os.environ)).format(record)
    assert "\n" not in line
    entry: dict[str, Any] = json.loads(line)
    return entry


def raised(error: Exception) -> Exception:
    """The error, with a stack trace."""
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_an_entry_has_time_level_logger_message_and_all_extras() -> None:
    entry = formatted("a run of %s failed", "ann", session="talk_1", run="run_1", excerpt="grüß\n", number=7, what={1})
    assert entry["message"] == "a run of ann failed"
    assert (entry["level"], entry["logger"]) == ("error", "roost.test")
    assert (entry["session"], entry["run"], entry["excerpt"], entry["number"]) == ("talk_1", "run_1", "grüß\n", 7)
    assert entry["time"].endswith("+00:00")


def test_a_stack_trace_is_one_field_with_the_type_of_the_error() -> None:
    entry = formatted("failed", error=raised(ZeroDivisionError("oops")))
    assert entry["error_type"] == "ZeroDivisionError"
    assert "test_log.py" in entry["stack"]


def test_half_a_surrogate_is_no_reason_to_lose_an_entry() -> None:
    assert formatted("\ud800")["message"] == "?"


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123", "abc.def-123"),
        ("postgresql://roost:hunter2@db/roost", "hunter2"),
        ("GET /enter?code=a_b-c&x=1", "a_b-c"),
        ("key is sk-1234567890", "sk-1234567890"),
        ("signed with correct horse battery", "correct horse battery"),
    ],
)
def test_secrets_are_hidden_wherever_they_stand(monkeypatch: pytest.MonkeyPatch, text: str, secret: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890")
    monkeypatch.setenv("ROOST_SECRET", "correct horse battery")
    entry = formatted(text, error=raised(ValueError(text)), excerpt=text)
    assert secret not in json.dumps(entry)
    assert entry["message"].count(HIDDEN) == 1


def test_what_is_short_or_no_secret_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN", "a")
    monkeypatch.setenv("KEYBOARD", "qwertzuiop")
    assert formatted("a banana on a qwertzuiop")["message"] == "a banana on a qwertzuiop"


def test_a_token_can_be_hidden_later() -> None:
    redactor = Redactor(os.environ)
    redactor.hide("my-fresh-token")
    assert redactor.clean("it is my-fresh-token!") == f"it is {HIDDEN}!"


def test_all_goes_to_the_file_and_warnings_to_the_terminal(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(tmp_path / "roost.log", level="info")
    logging.getLogger("roost.x").info("quiet")
    logging.getLogger("roost.x").warning("loud \x1b[31m", extra={"reference": "ABCD"})
    assert [json.loads(line)["message"] for line in (tmp_path / "roost.log").read_text().splitlines()] == [
        "quiet",
        "loud \x1b[31m",
    ]
    assert (tmp_path / "roost.log").stat().st_mode & 0o777 == 0o600
    shown = capsys.readouterr().err
    assert shown == "warning: loud  [31m (reference ABCD)\n"


def test_urls_that_are_requested_are_not_in_the_log(tmp_path: Path, root: logging.Logger) -> None:
    log.set_up(tmp_path / "roost.log", level="debug", terminal=False)
    with receiving() as receiver:
        httpx2.post(f"http://127.0.0.1:{receiver.port}/services/T00/B00-of-a-secret-url")
    assert "B00-of-a-secret-url" not in (tmp_path / "roost.log").read_text()


def test_json_stays_json_and_secrets_are_found_behind_escapes() -> None:
    redactor = Redactor({"A_PASSWORD": "123456", "B_SECRET": 'quo"ted\\value'})
    told = {"n": 123456, "password": "123456", "lines": "the key:\nsk-abcdefghijklmnopqrstuv", "q": 'quo"ted\\value'}
    cleaned = json.loads(redactor.clean_json(json.dumps(told)))
    assert cleaned == {"n": 123456, "password": HIDDEN, "lines": f"the key:\n{HIDDEN}", "q": HIDDEN}


@pytest.mark.parametrize(
    "text", ["übler sk-abcdefghijklmnopqrstuv", "\x1b\nsk-abcdefghijklmnopqrstuv", "\ud800 123456"]
)
def test_what_was_cleaned_is_written_as_what_is_clean_already(text: str) -> None:
    redactor = Redactor({"A_PASSWORD": "123456"})
    cleaned = redactor.clean_json(canonical({"asked": text}, "it"))
    cleaned.encode()
    assert HIDDEN in cleaned
    again = canonical(json.loads(cleaned), "it")
    assert redactor.clean_json(again) == again == cleaned, "a step is found again by it"


@pytest.mark.parametrize("part", ["a.", "a-", "eyJ-", "sk-", "eyJaaaaaaaa.eyJ", "a://b:", "xoxb-", "-----BEGIN "])
def test_no_text_takes_long_to_clean(part: str) -> None:
    before = time.process_time()
    Redactor().clean(part * 20_000)
    assert time.process_time() - before < 5, "it was half a minute"


def test_a_flood_is_logged_once_with_its_count(tmp_path: Path, root: logging.Logger) -> None:
    now = [0.0]
    log.set_up(tmp_path / "roost.log", terminal=False)
    handler = root.handlers[0]
    handler.filters = [FloodFilter(handler, lambda: now[0])]
    for _ in range(10_000):
        logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
        logging.getLogger("roost.brain").warning("a run has failed: %s", "why")
        now[0] += 0.0001
    now[0] += WINDOW
    logging.getLogger("roost.api").info("something else")
    entries = [json.loads(line) for line in (tmp_path / "roost.log").read_text().splitlines()]
    flood = [entry for entry in entries if entry["logger"] == "uvicorn.error"]
    assert [entry["message"] for entry in flood[:KEPT]] == ["Invalid HTTP request received."] * KEPT
    assert [entry.get("left_out") for entry in flood[KEPT:]] == [10_000 - KEPT]
    assert flood[KEPT]["level"] == "warning"
    assert sum(entry["logger"] == "roost.brain" for entry in entries) == 10_000  # that is no visitor's doing
    assert entries[-1]["message"] == "something else"


def test_kinds_of_records_are_remembered_in_bounded_number(tmp_path: Path, root: logging.Logger) -> None:
    log.set_up(tmp_path / "roost.log", terminal=False)
    handler = root.handlers[0]
    for number in range(MOST_KINDS + 100):
        logging.getLogger("asyncio").warning(f"odd thing {number}")
    found = handler.filters[0]
    assert isinstance(found, FloodFilter)
    assert len(found._windows) <= MOST_KINDS


def test_a_terminal_shows_where_a_brain_failed_and_the_file_has_the_whole_stack(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(tmp_path / "roost.log")
    about = {"brain": "mine", "session": "talk_1", "error": "KeyError: 'a' at mine.py:3", "reference": "ABCD"}
    error = raised(KeyError("a"))
    logging.getLogger("roost.run").error(
        "a run has failed", exc_info=error, extra={**about, "traceback": "Traceback:\n\x1b[31m  File\nKeyError: 'a'"}
    )
    assert capsys.readouterr().err == (
        "error: a run has failed: brain 'mine' in talk_1: KeyError: 'a' at mine.py:3 (reference ABCD)\n"
        "  Traceback:\n   [31m  File\n  KeyError: 'a'\n"
    )
    [entry] = [json.loads(line) for line in (tmp_path / "roost.log").read_text().splitlines()]
    assert "traceback" not in entry
    assert "test_log.py" in entry["stack"]


def test_a_terminal_names_the_agent_whose_brain_failed(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(None)
    about = {"brain": "mine", "session": "ann/helper", "error": "KeyError: 'a'", "traceback": "one\n\ntwo"}
    logging.getLogger("roost.run").error("a run has failed", extra=about)
    assert capsys.readouterr().err == (
        "error: a run has failed: brain 'mine' in agent ann/helper: KeyError: 'a'\n  one\n\n  two\n"
    )


def test_a_flood_of_failures_is_kept_whole_in_the_file_and_not_on_the_terminal(
    tmp_path: Path, root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    log.set_up(tmp_path / "roost.log")
    for number in range(2 * KEPT):
        logging.getLogger("roost.run").error("a run has failed", extra={"reference": f"R{number}"})
    assert len((tmp_path / "roost.log").read_text().splitlines()) == 2 * KEPT
    assert len(capsys.readouterr().err.splitlines()) == KEPT
