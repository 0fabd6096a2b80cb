"""The card *Connect a model*: who may use it, what it finds, and where a key is kept."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import roost
from roost import keys
from roost.connections import local_servers, providers
from roost.connections.connections import Connections
from roost.connections.local_servers import LocalServer
from roost.connections.providers import ProviderInfo
from roost.core.values.secrets import Redactor
from roost.errors import Invalid, Unavailable
from roost.ui import access
from roost.ui.first_visit import connect_model
from roost.ui.shell.background import BackgroundCall
from tests.conftest import eventually
from tests.ui.conftest import USER, Tab

KEY = "sk-canary-0123456789"
HOSTILE = "<script>:smile: [x](javascript:y)"


@pytest.fixture
def files(service: roost.AgentService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The page of the owner, with files of its own, and two servers on this machine."""
    connections = Connections(
        service.roost.context.brains,
        Redactor(),
        secrets=tmp_path / "secrets.toml",
        profiles=tmp_path / "profiles.toml",
        environ={},
    )
    found = [LocalServer("Ollama", "http://127.0.0.1:1/v1", ("tiny:1b", HOSTILE))]
    monkeypatch.setattr(local_servers, "find", lambda _: found)
    access.host(service, lambda _: USER, USER, connections=connections)
    yield tmp_path
    access.host(service, lambda _: USER)


def wait(tab: Tab, job: str) -> Tab:
    """Wait for the thread of a job, and draw the page as the poll does."""
    if job in tab.app.session_state:
        found = tab.app.session_state[job]
        assert isinstance(found, BackgroundCall)
        eventually(lambda: found.is_done)
    return tab.look()


def told(tab: Tab) -> str:
    return " ".join([*(text.value for text in (*tab.app.markdown, *tab.app.caption)), *tab.notices])


def test_a_model_on_this_machine_is_connected_by_one_click(files: Path, service: roost.AgentService) -> None:
    tab = wait(Tab(service=service).look().click("choose_connect"), "local_search")
    labels = {button.key: button.label for button in tab.app.button}
    assert labels["model_0_0"] == r"tiny\:⁠1b".replace("⁠", "\u2060")
    assert labels["model_0_1"].startswith(r"\<script\>")
    tab.click("model_0_0")
    assert tab.notices == ["You can now talk with tiny-1b: type a message."]
    assert tab.app.session_state["draft"].profile == "tiny-1b"
    assert not tab.has("look_again")
    assert "ollama:tiny:1b" in (files / "profiles.toml").read_text()


def test_a_key_is_tested_saved_and_never_shown(
    files: Path, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    tested: list[tuple[str, str]] = []
    results: list[Exception] = [Invalid("OpenAI refuses this key"), Unavailable("OpenAI cannot be reached")]

    def try_key(provider: ProviderInfo, key: str) -> None:
        tested.append((provider.name, key))
        if results:
            raise results.pop(0)

    monkeypatch.setattr(providers, "try_key", try_key)
    tab = wait(Tab(service=service).look().click("choose_connect"), "local_search")
    for problem in ("This is not a key", "OpenAI refuses this key.", "OpenAI cannot be reached."):
        enter(tab, "two keys" if problem.startswith("This") else f" {KEY}\n")
        assert problem in told(tab)
        assert not (files / "secrets.toml").exists()
        assert tab.app.text_input(key="key_value").value == ""
    enter(tab, f'"{KEY}"')
    assert tested == [("openai", KEY)] * 3
    assert keys.values_in(files / "secrets.toml") == {"OPENAI_API_KEY": KEY}
    assert tab.notices == ["You can now talk with openai: type a message."]
    assert KEY not in f"{tab.app.main} {tab.app.session_state!r}"


def enter(tab: Tab, key: str) -> None:
    tab.app.selectbox(key="key_provider").set_value("openai")
    tab.app.text_input(key="key_value").set_value(key)
    next(button for button in tab.app.button if button.label == "Test and save").click().run()
    wait(tab, "key_test")


def test_a_secrets_file_that_cannot_be_written_is_one_sentence(
    files: Path, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(providers, "try_key", lambda *_: None)
    (files / "secrets.toml").mkdir(mode=0o700)
    tab = wait(Tab(service=service).look().click("choose_connect"), "local_search")
    enter(tab, KEY)
    assert "Cannot read the secrets in" in told(tab)
    assert KEY not in told(tab)


def test_other_users_read_how_it_works_and_can_do_nothing(files: Path, service: roost.AgentService) -> None:
    access.host(service, lambda _: "visitor", USER, connections=access.connections())
    tab = Tab(service=service).look().click("choose_connect")
    assert connect_model.KEYS in told(tab)
    assert connect_model.OWNER in told(tab)
    assert not tab.app.main.text_input
    assert "local_search" not in tab.app.session_state
    assert not tab.has("look_again")


def test_a_key_whose_dialog_was_closed_is_not_saved(
    files: Path, service: roost.AgentService, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()
    monkeypatch.setattr(providers, "try_key", lambda *_: release.wait())
    tab = wait(Tab(service=service).look().click("choose_connect"), "local_search")
    tab.app.text_input(key="key_value").set_value(KEY)
    next(button for button in tab.app.button if button.label == "Test and save").click().run()
    job = tab.app.session_state["key_test"]
    assert "Testing the key…" in told(tab)
    job.drop()  # as closing does
    release.set()
    eventually(lambda: job.is_done)
    with pytest.raises(Unavailable, match="was not saved"):
        job.result()
    assert not (files / "secrets.toml").exists()


def test_a_job_that_takes_too_long_counts_as_failed() -> None:
    release = threading.Event()
    job = BackgroundCall(lambda _: release.wait(), "slow", 0.0)
    eventually(lambda: job.is_done)
    with pytest.raises(Unavailable, match="takes too long"):
        job.result()
    release.set()
