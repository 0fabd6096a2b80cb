"""Environments of the peers: one each, made once, with the versions and hashes of `requirements/peers`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements" / "peers"


def python_of(peer: str) -> Path:
    """Return the interpreter of a peer's environment, which is made if it is missing. Bare SQLite needs none."""
    lock = LOCKS / f"{peer}.txt"
    if not lock.exists():
        return Path(sys.executable)
    folder = ROOT / ".cache" / "peers" / peer
    python, stamp = folder / "bin" / "python", folder / "installed.txt"
    if not stamp.exists() or stamp.read_text() != lock.read_text():
        print(f"installing {peer} (once) …", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        options = ["-qq", "--disable-pip-version-check", "--require-hashes", "-r", str(lock)]
        subprocess.run([str(python), "-m", "pip", "install", *options], check=True)
        stamp.write_text(lock.read_text())
    return python
