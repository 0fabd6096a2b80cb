"""The brain that answers when nothing is configured, and the places that keys come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import roost
from roost import keys
from roost.brains.profiles import ProfileRegistry
from roost.brains.scripted import echo
from roost.ports import Profile
from tests.conftest import everything


@pytest.fixture
def with_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary-0123456789")


def test_without_anything_the_guide_answers_and_says_how_to_get_a_model(tmp_path: Path) -> None:
    chosen = ProfileRegistry(models=tmp_path).names()[0]
    assert chosen.name == "guide"
    assert "set ANTHROPIC_API_KEY, OPENAI_API_KEY, GOOGLE_API_KEY or another key, and start again" in chosen.description


@pytest.mark.usefixtures("with_key")
def test_a_provider_whose_key_is_set_goes_before_that(tmp_path: Path) -> None:
    chosen = ProfileRegistry(models=tmp_path).names()[0]
    assert (chosen.name, chosen.brain, str(chosen.model).split(":")[0]) == ("openai", "llm", "openai")


@pytest.mark.usefixtures("with_key")
@pytest.mark.parametrize(
    ("shelf", "name"),
    [
        (ProfileRegistry({"parrot": echo}), "parrot"),
        (ProfileRegistry(None, [Profile("mine", "echo")]), "mine"),
        (ProfileRegistry(None, [Profile("openai", "echo")]), "openai"),
        (ProfileRegistry(None, (), "guide"), "guide"),
    ],
)
def test_what_is_given_or_configured_goes_before_all(shelf: ProfileRegistry, name: str) -> None:
    assert shelf.default == name
    assert shelf.profile(name).brain != "llm"


@pytest.mark.usefixtures("with_key")
def test_without_the_extra_a_key_is_of_no_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("roost.brains.defaults.find_spec", lambda name: None)
    chosen = ProfileRegistry(models=tmp_path).names()[0]
    assert chosen.name == "guide"
    assert "pip install 'roost[llm]'" in chosen.description


def test_a_profile_whose_extra_is_missing_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "roost.brains.llm", None)
    shelf = ProfileRegistry(None, [Profile("mine", "llm", model="openai:x")])
    with pytest.raises(roost.BrainFailed, match=r"pip install 'roost\[llm\]'") as raised:
        shelf.load(shelf.profile("mine"))
    assert (raised.value.kind, raised.value.advice) == ("extra", "pip install 'roost[llm]', and start Roost again")


# --- secrets --------------------------------------------------------------------------------------


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "secrets.toml"
    file.write_text(text)
    file.chmod(mode)
    return file


def test_secrets_are_read_from_the_first_file_there_is_and_what_is_set_stays(tmp_path: Path) -> None:
    file = written(tmp_path, 'A_KEY = "one"\nB_TOKEN = "two"\n')
    environ = {"A_KEY": "mine"}
    assert keys.read([tmp_path / "nowhere", tmp_path], environ) == file
    assert environ == {"A_KEY": "mine", "B_TOKEN": "two"}
    assert keys.read([tmp_path / "nowhere"], environ) is None


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ('A_KEY = "canary"', 0o644, "other users may read the secrets"),
        ("A_KEY = canary", 0o600, "line 1: this is not valid TOML"),
        ('name = "canary"', 0o600, "names end in _KEY"),
        ("A_KEY = 7", 0o600, "A_KEY must be text in quotes"),
        ('[A_KEY]\ncanary = "x"', 0o600, "A_KEY must be text in quotes"),
    ],
)
def test_an_invalid_key_file_is_reported_and_its_content_neither_shown_nor_used(
    tmp_path: Path, text: str, mode: int, told: str
) -> None:
    written(tmp_path, text, mode)
    environ: dict[str, str] = {}
    with pytest.raises(roost.Invalid, match=told) as raised:
        keys.read([tmp_path], environ)
    assert "canary" not in str(raised.value)
    assert environ == {}


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(roost.Invalid, match="cannot read the secrets"):
        keys.read([], {"ROOST_SECRETS": str(tmp_path / "gone.toml")})


def test_a_key_in_the_file_makes_its_provider_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOST_SECRETS", str(written(tmp_path, 'ANTHROPIC_API_KEY = "sk-canary-0123456789"')))
    monkeypatch.setitem(os.environ, "ANTHROPIC_API_KEY", "")
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with roost.open(f"sqlite:///{tmp_path / 'roost.db'}") as service:
        assert service.profiles()[0].name == "anthropic"
        talk = service.create_talk_session("ann")
        assert service.get_session("ann", talk).profile == "anthropic"
        assert everything(service, "ann", talk) == ()
