"""Names of ADK agents in a profile, and the errors for wrong ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

import roost
from roost.brains.profiles import ProfileRegistry
from roost.errors import BrainFailed
from roost.ports import Profile
from tests.brains.adk import models
from tests.conftest import ENVIRONMENT, settled

AGENT = """
from tests.brains.adk.models import agent
root_agent = agent(name="found")
"""


def load(agent: str | None) -> object:
    return ProfileRegistry().load(Profile("helper", "adk", agent=agent))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that `adk run` would take."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = tmp_path / f"agent_{abs(hash(tmp_path.name))}"
    found.mkdir()
    (found / "__init__.py").write_text("from . import agent\n")
    (found / "agent.py").write_text(AGENT)
    return found


@pytest.mark.parametrize("more", ["", "from google.adk.apps import App\napp = App(name='shop', root_agent=root_agent)"])
def test_a_folder_beside_the_settings_is_taken(folder: Path, more: str) -> None:
    (folder / "agent.py").write_text(AGENT + more)
    settings = folder.parent / "roost.toml"
    settings.write_text(f'[profiles.helper]\nbrain = "adk"\nagent = "{folder.name}"\n')
    with roost.open(f"sqlite:///{folder.parent}/roost.db", config=settings) as service:
        talk = service.create_talk_session("ann", profile="helper")
        service.add_message("ann", talk, "hello")
        assert settled(service, "ann", talk)[-1].content == "you said hello"
    assert models.spoke[-1] == "found"


def test_a_module_is_taken_and_loaded_once() -> None:
    shelf, profile = ProfileRegistry(), Profile("helper", "adk", agent="tests.brains.adk.models:root_agent")
    assert shelf.loaded(profile) is None
    brain = shelf.load(profile)
    assert shelf.loaded(profile) is brain
    assert shelf.loaded(Profile("other", "adk", agent="tests.brains.adk.models:other")) is None


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        (None, "names no agent"),
        ("no/such/folder", "is not a folder"),
        ("tests.brains.adk.models:nothing", "has no 'nothing'"),
        ("tests.brains.adk.models:agent", "is not an agent of the ADK, but function"),
        ("no_such_module:root_agent", "there is no module 'no_such_module'"),
    ],
)
def test_an_object_that_is_no_agent_is_refused(agent: str | None, told: str) -> None:
    with pytest.raises(BrainFailed, match=told) as raised:
        load(agent)
    assert raised.value.kind == "brain"


def test_a_broken_folder_is_refused_with_its_reason(folder: Path) -> None:
    (folder / "agent.py").write_text("1 / 0")
    with pytest.raises(BrainFailed, match="division by zero"):
        load(str(folder))


def test_a_missing_extra_is_named_with_the_command_that_installs_it() -> None:
    program = dedent("""
        import sys
        sys.modules["google.adk"] = None
        from roost.brains.profiles import ProfileRegistry
        from roost.ports import Profile
        try:
            ProfileRegistry().load(Profile("helper", "adk", agent="x:y"))
        except Exception as error:
            print(error)
    """)
    done = subprocess.run([sys.executable, "-c", program], env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert done.stdout == "agents of the ADK need an extra: pip install 'roost[adk]', and start Roost again\n"
