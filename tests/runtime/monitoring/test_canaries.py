"""S5: secrets in keys, prompts, tool results and errors are in no log, journal, metric, fact or error message."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import roost
from roost import AsyncAgentService, Turn, log
from roost.core.values.secrets import _STRING, HIDDEN, Redactor, is_plain
from roost.protocol import prometheus
from tests.conftest import QUICK, eventually
from tests.runtime.conftest import World, becomes, ended

KNOWN = "canary-known-by-its-value"
LOOKS = {
    "provider": "sk-canary0123456789abcdefgh",
    "github": "ghp_canary0123456789ABCDEFGHIJ",
    "amazon": "AKIACANARY0123456789",
    "google": "AIzaCanary_0123456789abcdefghijklmnop",
    "slack": "xoxb-canary-0123456789",
    "jwt": "eyJjYW5hcnkiOjF9.eyJjYW5hcnkiOjJ9.c2lnbmF0dXJl",
    "bearer": "Bearer canary.0123456789",
    "url": "postgresql://ann:canary-password@host/db",
}
WORDS = ("canary", "Canary", "CANARY", "eyJjYW5hcnki")


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Path]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    root.handlers = []
    log.set_up(tmp_path / "roost.log", level="debug", terminal=False)
    yield tmp_path / "roost.log"
    for handler in root.handlers:
        handler.close()
    root.handlers, root.level = handlers, level
    logging.captureWarnings(False)


@roost.tool
async def fetch(what: str) -> str:
    """Gives back what it was asked for, and the key it was asked with."""
    return f"{what} with {KNOWN}"


@roost.tool
async def breaks(what: str) -> str:
    raise ValueError(f"refused {what} with {KNOWN}")


@roost.tool(approval=True)
async def careful(what: str) -> str:
    return what


def lose(what: str) -> None:
    raise OSError(f"{what} {KNOWN} is lost")


async def leaky(turn: Turn) -> AsyncIterator[str]:
    turn.state["seen"] = turn.text
    async with turn.model_call("model", {"prompt": turn.text, "key": KNOWN}) as call:
        call.response = {"said": f"{turn.text} {KNOWN}"}
    with suppress(ConnectionError):
        async with turn.model_call("model", {"again": turn.text}):
            raise ConnectionError(f"{turn.text} is no key, nor is {KNOWN}")
    assert KNOWN in await turn.call_tool("fetch", {"what": turn.text}), "it is given the real one"
    await turn.step("note", lambda: f"{turn.text} {KNOWN}")
    with suppress(OSError):
        await turn.step("lose", lose, turn.text)
    if turn.agent_id is not None:
        assert KNOWN in await turn.call_tool("remember", {"text": "where it is", "key": KNOWN})
    assert await turn.call_tool("careful", {"what": turn.text}) == turn.text
    try:
        await turn.call_tool("breaks", {"what": turn.text})
    except roost.ToolFailed:
        yield "it broke"
    raise RuntimeError(f"cannot go on: {turn.text} {KNOWN}")


def test_canaries_are_nowhere_but_where_they_were_put(
    tmp_path: Path, logged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CANARY_API_KEY", KNOWN)
    redactor = log.set_up(logged, level="debug", terminal=False)
    assert redactor.clean(KNOWN) == HIDDEN
    database = tmp_path / "a.db"
    prompt = " and ".join([KNOWN, *LOOKS.values()])
    tools = [fetch, breaks, careful]
    with roost.open(f"sqlite:///{database}", brains={"leaky": leaky}, tools=tools, limits=QUICK) as service:
        service.agents.create("ann", "d", profile="leaky", max_attempts=1)
        task = service.tasks.send("ann", "d", prompt)
        talk = service.create_talk_session("ann", profile="leaky", title="plain")
        service.add_message("ann", talk, prompt)
        eventually(lambda: len(service.approvals.list("ann")) == 2)
        for one in service.approvals.list("ann"):
            service.approvals.approve("ann", one.approval_id)
        over = service.tasks.wait("ann", task)
        for _ in service.stream_messages("ann", talk):
            pass
        answer = service.get_messages("ann", talk).messages[-1]
        runs = [service.runs.get("ann", run.run_id) for run in service.runs.list("ann")]
        told = [repr(service.monitor.facts("ann").facts), prometheus.text(service.monitor.metrics().values())]
        told += [repr(runs), repr(service.approvals.list("ann", all=True)), str(over.error), str(answer.error)]
        told += [repr(service.mail.inbox("ann")), repr([letter.reason for letter in service.dead_letters.list("ann")])]
    assert (over.status, answer.status, len(runs)) == ("failed", "failed", 2)
    assert sorted(len(run.steps) for run in runs) == [7, 8]
    told.append(logged.read_text())
    told.append(_rows(database, "steps", "approvals", "runs", "events", "agent_changes"))
    assert "cannot go on" in told[-2], "the log says what happened"
    for text in told:
        assert not [word for word in WORDS if word in text.replace("CANARY_API_KEY", "")], text[:2_000]


def test_what_a_person_says_in_place_of_a_tool_is_hidden_in_the_journal(simulated: World) -> None:
    async def asks(turn: Turn) -> AsyncIterator[str]:
        yield str(len(await turn.call_tool("careful", {"what": "the key"})))

    async def story(service: AsyncAgentService) -> None:
        talk = await service.create_talk_session("ann", profile="asks")
        await service.add_message("ann", talk, "go")
        [one] = await becomes(lambda: service.approvals.list("ann"), bool)
        await service.approvals.answer("ann", one.approval_id, LOOKS["provider"])
        assert (await ended(service, talk))[-1].content == str(len(LOOKS["provider"])), "it is given the real one"
        [run] = await service.runs.list("ann", talk=talk)
        [step] = (await service.runs.get("ann", run.run_id)).steps
        assert step.result == HIDDEN

    simulated({"asks": asks}, story, tools=[careful])


def _rows(database: Path, *tables: str) -> str:
    connection = sqlite3.connect(database)
    try:
        return repr([connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables])
    finally:
        connection.close()


@pytest.mark.parametrize(
    "secret", [*LOOKS.values(), "-----BEGIN RSA PRIVATE KEY-----\nMIIcanary\n-----END RSA PRIVATE KEY-----"]
)
def test_what_looks_like_a_key_is_hidden_and_json_stays_json(secret: str) -> None:
    text = json.dumps({"before": "b", "secret": f"it is {secret}", "after": ["a", f'"{secret}"']})
    cleaned = Redactor().clean(text)
    assert not [word for word in WORDS if word in cleaned]
    assert json.loads(cleaned)["before"] == "b"


def test_what_is_no_secret_stays() -> None:
    for text in (
        "task-force skills",
        "sk-8",
        "pkg_resources",
        "keyboard=1",
        "an eyJ alone",
        "mail me at ann@example.org",
    ):
        assert Redactor().clean(text) == text


def test_what_settings_hand_to_servers_and_providers_is_secret_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "SEARCH_ACCOUNT": "canary 1",
        "SEARCH_LOGIN": "canary2",
        "MODEL_ACCESS": "canaries",
        "SEARCH_MODE": "canary",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SEARCH_HOME", "/srv/canary")
    (tmp_path / "roost.toml").write_text("""
[mcp.search]
command = ["search"]
environment = ["SEARCH_ACCOUNT", "SEARCH_MODE", "SEARCH_HOME", "NOT_SET"]
[mcp.far]
url = "http://localhost/mcp"
token = "SEARCH_LOGIN"
[profiles.mine]
brain = "llm"
model = "openai:some"
key = "MODEL_ACCESS"
""")
    with roost.open(f"sqlite:///{tmp_path}/a.db", config=tmp_path / "roost.toml") as service:
        clean = service.roost.context.redactor.clean
        assert clean("canary 1, canary2 and canaries") == f"{HIDDEN}, {HIDDEN} and {HIDDEN}"
        assert clean("the mode is canary, in /srv/canary") == "the mode is canary, in /srv/canary"


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ("production", True),
        ("true", True),
        ("8080", True),
        ("12:30", True),
        ("/srv/data", True),
        ("~/data", True),
        ("https://search.example/v1", True),
        ("abc", True),
        ("", True),
        ("https://ann:word@search.example", False),
        ("https://search.example?id=1", False),
        ("a1b2c3d4", False),
        ("correct horse", False),
        ("ABCDEFGHIJKLMNOPQ", False),
        ("user@host", False),
    ],
)
def test_words_numbers_paths_and_addresses_are_no_secrets(value: str, plain: bool) -> None:
    assert is_plain(value) is plain


SECRETS = st.sampled_from([*LOOKS.values(), KNOWN, "-----BEGIN PRIVATE KEY-----\nAAAA", "http://h:1", "a@b", "?key=x"])
TEXTS = st.lists(st.one_of(SECRETS, st.text(max_size=10), st.sampled_from(['"', "\\", "\n", " ", "/"]))).map("".join)
VALUES = st.recursive(TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=8)


@given(VALUES)
def test_whatever_is_hidden_json_stays_json(value: object) -> None:
    redactor = Redactor({"A_KEY": KNOWN})
    for encoded in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        cleaned = redactor.clean(encoded)
        assert KNOWN not in cleaned
        json.loads(cleaned)


@given(VALUES)
def test_a_text_of_json_is_cleaned_as_each_of_its_strings_is(value: object) -> None:
    redactor = Redactor({"A_KEY": KNOWN})
    for encoded in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        one_by_one = _STRING.sub(partial(redactor._clean_string, ()), encoded)
        assert redactor.clean_json(encoded) == one_by_one
