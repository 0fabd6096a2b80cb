"""Connecting models: what is kept, what can be used at once, and what never gets out."""

from __future__ import annotations

import stat
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost import keys
from roost.brains.profiles import ProfileRegistry
from roost.connections import added_profiles
from roost.connections.connections import Connections
from roost.connections.local_servers import LocalServer
from roost.connections.providers import PROVIDERS, cleaned
from roost.core.values.secrets import Redactor
from roost.errors import Conflict, Invalid, Unavailable

KEY = "sk-canary-0123456789"
OPENAI = PROVIDERS["openai"]


class Desk:
    """Connections of a registry, with files in a folder and an environment of its own."""

    def __init__(self, folder: Path, **environ: str) -> None:
        self.environ = environ
        self.secrets, self.profiles = folder / "secrets.toml", folder / "profiles.toml"
        self.registry, self.redactor = ProfileRegistry(models=folder), Redactor()
        self.connections = Connections(
            self.registry, self.redactor, secrets=self.secrets, profiles=self.profiles, environ=self.environ
        )


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for names in (provider.variable for provider in PROVIDERS.values()):
        monkeypatch.delenv(names, raising=False)
    return Desk(tmp_path)


def test_a_key_is_kept_for_its_owner_alone_hidden_everywhere_and_used_at_once(desk: Desk) -> None:
    assert desk.registry.default == "guide"
    profile = desk.connections.add_key(OPENAI, f"  {KEY}\n")
    assert tomllib.loads(desk.secrets.read_text()) == {"OPENAI_API_KEY": KEY}
    assert stat.S_IMODE(desk.secrets.stat().st_mode) == 0o600
    assert desk.environ == {"OPENAI_API_KEY": KEY}
    assert KEY not in desk.redactor.clean(f"the key is {KEY}.")
    assert (profile.name, desk.registry.default) == ("openai", "openai")
    assert "start again" not in desk.registry.profile("guide").description
    assert desk.connections.add_key(OPENAI, "sk-another-0123456789") == profile
    assert keys.values_in(desk.secrets) == {"OPENAI_API_KEY": "sk-another-0123456789"}
    assert [file.name for file in desk.secrets.parent.iterdir()] == ["secrets.toml"]


def test_other_lines_of_the_secrets_file_stay(desk: Desk) -> None:
    desk.secrets.write_text('# mine\nHOUSE_TOKEN = "h"\n  OPENAI_API_KEY = "old"  # old\nB_KEY = "b"')
    desk.secrets.chmod(0o600)
    keys.write(desk.secrets, "OPENAI_API_KEY", KEY)
    assert desk.secrets.read_text() == f'# mine\nHOUSE_TOKEN = "h"\nB_KEY = "b"\nOPENAI_API_KEY = "{KEY}"\n'
    desk.secrets.write_text('A_KEY = """\nOPENAI_API_KEY = 1\n"""\nOPENAI_API_KEY = """x\ny"""\n')
    keys.write(desk.secrets, "OPENAI_API_KEY", KEY)
    assert keys.values_in(desk.secrets) == {"A_KEY": "OPENAI_API_KEY = 1\n", "OPENAI_API_KEY": KEY}


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=60))
def test_any_key_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, key: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    keys.write(file, "OPENAI_API_KEY", key)
    assert keys.values_in(file) == {"OPENAI_API_KEY": key}


@pytest.mark.parametrize("given", [KEY, f" {KEY}\r\n", f'"{KEY}"', f"' {KEY} '", f"\u00a0{KEY}\t"])
def test_what_surrounds_a_pasted_key_is_removed(given: str) -> None:
    assert cleaned(given) == KEY


@pytest.mark.parametrize(
    "given", ["", "   ", "short", f"{KEY}\n{KEY}", f"{KEY} {KEY}", "sk-\u00e4" * 9, "x" * 501, f"{KEY}\x00", '""']
)
def test_what_cannot_be_a_key_is_refused_without_repeating_it(desk: Desk, given: str) -> None:
    with pytest.raises(Invalid, match="this is not a key") as error:
        desk.connections.add_key(OPENAI, given)
    assert not given.strip() or given not in str(error.value)
    assert not desk.secrets.exists()


def test_a_key_of_the_environment_is_not_replaced_behind_its_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, OPENAI_API_KEY="sk-from-the-shell-1234")
    with pytest.raises(Conflict, match="OPENAI_API_KEY is set in the environment"):
        desk.connections.add_key(OPENAI, KEY)
    assert not desk.secrets.exists()


@pytest.mark.parametrize("broken", ["directory", "no folder", "readable by others", "not TOML"])
def test_a_secrets_file_that_cannot_be_used_is_one_sentence_without_the_key(desk: Desk, broken: str) -> None:
    if broken == "directory":
        desk.secrets.mkdir()
    elif broken == "no folder":
        desk.connections = Connections(
            desk.registry,
            desk.redactor,
            secrets=desk.secrets / "x" / "secrets.toml",
            profiles=desk.profiles,
            environ=desk.environ,
        )
    else:
        desk.secrets.write_text('A_KEY = "a"' if broken.startswith("readable") else "A_KEY = ")
        desk.secrets.chmod(0o644 if broken.startswith("readable") else 0o600)
    with pytest.raises((Invalid, Unavailable)) as error:
        desk.connections.add_key(OPENAI, KEY)
    assert KEY not in f"{error.value!r} {error.value.__cause__!r} {error.value.__context__!r}"
    assert desk.environ == {}
    assert desk.registry.default == "guide"


# --- models on this machine -----------------------------------------------------------------------


def test_a_model_on_this_machine_is_a_profile_at_once_and_after_the_next_start(desk: Desk) -> None:
    server = LocalServer("Ollama", "http://127.0.0.1:11434/v1", ("llama3.2:latest",))
    profile = desk.connections.add_local(server, "llama3.2:latest")
    assert desk.connections.add_local(server, "llama3.2:latest") == profile
    assert (profile.name, profile.model) == ("llama3.2-latest", "ollama:llama3.2:latest")
    assert desk.registry.default == profile.name
    assert added_profiles.read(desk.profiles) == [profile]


@pytest.mark.parametrize(
    "model", ['"]\nx = 1', "gguf", "guide", "demo-host", "--", "a/b/c.gguf", "näh", "<b>[x](y)", '"""']
)
def test_any_name_of_a_model_makes_a_profile_that_is_read_again(desk: Desk, model: str) -> None:
    model = " ".join(model.split())  # names of several lines are dropped before
    server = LocalServer("vLLM", "http://127.0.0.1:8000/v1", (model,))
    profile = desk.connections.add_local(server, model)
    other = desk.connections.add_local(LocalServer("LM Studio", "http://127.0.0.1:1234/v1", (model,)), model)
    assert profile.model == f"openai:{model}"
    assert desk.registry.profile(profile.name) is profile
    assert other.name != profile.name
    assert added_profiles.read(desk.profiles) == [profile, other]


@pytest.mark.parametrize("text", ["x", "profiles = 1", "[profiles.a]\nmodel = 1", "[profiles]\na = 1", "\x00"])
def test_a_broken_file_of_profiles_is_named(desk: Desk, text: str) -> None:
    desk.profiles.write_text(text)
    with pytest.raises(Invalid, match=r"profiles\.toml"):
        added_profiles.read(desk.profiles)
