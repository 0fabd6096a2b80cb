"""The recipes of the guide hold a conversation each, as they are printed: Python, Node and curl."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import curls
from tests.api.serving import Served
from tests.client.nodes import NODE
from tests.servers import ROOT

PAGE = (ROOT / "docs/guides/clients.md").read_text()


def found(language: str, served: Served) -> list[str]:
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    return [block.replace("http://localhost:8501", served.url) for block in blocks]


@pytest.fixture
def environment(served: Served) -> dict[str, str]:
    return {"ROOST_TOKEN": served.service.tokens.create("ann", "test").secret}


def printed(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_python_and_node_print_what_the_page_says(served: Served, tmp_path: Path, environment: dict[str, str]) -> None:
    plain, coroutines = found("py", served)
    [script] = found("js", served)
    downloads = found("bash", served)[1]
    curls.run(downloads, tmp_path, environment)
    (tmp_path / "program.mjs").write_text(script)
    commands = [
        [sys.executable, "-W", "error", "-c", plain],
        [sys.executable, "-W", "error", "-c", coroutines],
        [str(NODE), "program.mjs"],
    ]
    told = [printed(command, tmp_path, environment).strip() for command in commands]
    assert told == [text.strip() for text in found("text", served)]
    assert {file.name for file in tmp_path.glob("roost.*")} >= {"roost.mjs", "roost.d.mts"}


@pytest.mark.parametrize("stand_in", [False, True], ids=["curl", "without curl"])
def test_curl_holds_a_conversation(served: Served, tmp_path: Path, environment: dict[str, str], stand_in: bool) -> None:
    told = curls.run(found("bash", served)[2], tmp_path, environment, stand_in=stand_in)
    events = [line for line in told.splitlines() if line.startswith("event: ")]
    assert '"sender":"agent"' in told
    assert told.count("Hello from curl!") >= 3
    assert events[-1] == "event: end"
