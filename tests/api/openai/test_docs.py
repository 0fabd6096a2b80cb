"""The recipes of the guide, with the official client and with curl, against a real server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from roost.api.openai.requests import WITHOUT_EFFECT
from tests import curls
from tests.api.serving import Served
from tests.servers import ROOT

PAGE = (ROOT / "docs/guides/openai.md").read_text()


def found(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def environment(served: Served) -> dict[str, str]:
    names = {"OPENAI_BASE_URL": f"{served.url}/v1", "OPENAI_API_KEY": served.identity.token}
    return {**os.environ, **names, "NO_PROXY": "*"}


def test_the_samples_print_what_the_page_says(served: Served) -> None:
    *samples, _ = found("py")  # the last one, with tools, is run in test_tools
    program = "\nprint('---')\n".join(samples)
    command = [sys.executable, "-W", "error", "-c", program]
    result = subprocess.run(command, env=environment(served), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr
    assert [part.strip() for part in result.stdout.split("---")] == [text.strip() for text in found("text")]
    assert len(samples) == 2


def test_the_command_of_the_page_is_answered(served: Served, tmp_path: Path) -> None:
    exports, command = found("bash")
    assert [line.split("=")[0] for line in exports.splitlines()] == ["export OPENAI_BASE_URL", "export OPENAI_API_KEY"]
    told = curls.run(command, tmp_path, environment(served))
    assert json.loads(told)["choices"][0]["message"]["content"] == "Hello!"


def test_every_refused_field_is_documented() -> None:
    [row] = [line for line in PAGE.splitlines() if line.endswith("| refused with 400 |")]
    named = set(re.findall(r"`(\w+)`", row))
    assert named | {"top_logprobs", "function_call"} == WITHOUT_EFFECT.keys()
