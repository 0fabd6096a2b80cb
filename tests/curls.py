"""The commands of the docs that use curl, where it is installed and where it is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

STAND_IN = f"""#!{sys.executable}
# Sends what curl would send, with the few options that the docs use.
import sys, urllib.request
given = iter(sys.argv[1:])
urls, headers, data, is_saved = [], {{}}, None, False
for word in given:
    if word == "-H":
        name, _, value = next(given).partition(": ")
        headers[name] = value
    elif word == "-d":
        data = next(given).encode()
    elif word.startswith("-"):
        assert set(word) <= set("-sSNO"), word
        is_saved = is_saved or "O" in word
    else:
        urls.append(word)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({{}}))
for url in urls:
    with opener.open(urllib.request.Request(url, data, headers), timeout=60) as response:
        found = response.read()
    if is_saved:
        open(url.rpartition("/")[2], "wb").write(found)
    else:
        sys.stdout.buffer.write(found)
"""


def has_curl() -> bool:
    return shutil.which("curl") is not None


def run(command: str, folder: Path, environment: Mapping[str, str], *, stand_in: bool = False) -> str:
    """Run a recipe in a folder with curl, or with its stand-in; return what it prints."""
    path = os.environ["PATH"]
    if stand_in or not has_curl():
        programs = folder / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "curl").write_text(STAND_IN)
        (programs / "curl").chmod(0o755)
        path = f"{programs}{os.pathsep}{path}"
    done = subprocess.run(
        ["bash", "-ec", command],
        cwd=folder,
        env={**os.environ, **environment, "PATH": path, "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
