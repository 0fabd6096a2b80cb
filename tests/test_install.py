"""Roost as people install it who do not clone it: the wheel in a fresh environment, and the container's files."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest

from tests.servers import ROOT

GUIDE = "import roost; s = roost.open('sqlite:///t.db'); t = s.create_talk_session('ann', profile='guide'); \
s.add_message('ann', t, 'How do I create an agent?'); *_, last = s.stream_messages('ann', t); \
print(last.message.content); s.close()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own with the built wheel; dependencies are those of this one, since there is no network."""
    folder = tmp_path_factory.mktemp("installed")
    build = ["wheel", "-qq", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT)]
    subprocess.run([sys.executable, "-m", "pip", *build], check=True, timeout=120)
    [wheel] = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True, timeout=60)
    [packages] = (folder / "venv").glob("lib/python3*/site-packages")
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    into = ["--python", str(folder / "venv/bin/python"), "install", "-qq", "--no-deps", "--no-index", str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *into], check=True, timeout=60)
    return folder


def run(installed: Path, program: str, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ROOST_DATA")}
    done = subprocess.run(
        [str(installed / "venv/bin" / program), *arguments],
        cwd=installed,
        env=environment | {"ROOST_DATA": str(installed / "data")},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


def test_the_wheel_has_the_command_the_pages_and_the_docs_of_the_guide(installed: Path) -> None:
    where = run(installed, "python", "-c", "import roost; print(roost.__file__)").strip()
    assert where.startswith(str(installed))
    assert run(installed, "roost", "--version").startswith("roost ")
    assert "/docs/" in run(installed, "python", "-c", GUIDE)
    files = {str(file.relative_to(Path(where).parent)) for file in (Path(where).parent / "ui").rglob("*")}
    assert {"ui/logo.svg", "ui/style.css", "ui/messages/list.js", "ui/compose/compose.html"} <= files
    assert {"roost.mjs", "roost.d.mts"} <= {file.name for file in (Path(where).parent / "client/javascript").iterdir()}


def test_what_the_container_copies_exists_and_what_it_runs_is_a_command(installed: Path) -> None:
    text = (ROOT / "Containerfile").read_text()
    copied = [name for line in re.findall(r"^COPY (.+)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    [command] = re.findall(r"^CMD (.+)$", text, re.MULTILINE)
    program, *arguments = json.loads(command)
    assert "--no-browser" in run(installed, program, arguments[0], "--help")


def test_the_readme_installs_from_what_exists() -> None:
    readme = (ROOT / "README.md").read_text()
    name = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"]
    assert f"uvx --from '{name}[ui,llm] @ file:" in readme
    assert f"pip install '{name}[ui,llm] @ file:" in readme
    assert "-f Containerfile" in readme
