"""`roost bench`: run the benchmarks of a checkout; they are not part of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from roost.errors import Unavailable


def run(arguments: list[str]) -> int:
    """Run `python -m bench` of the checkout of this package and return its exit code."""
    for root in (Path.cwd(), *Path(__file__).resolve().parents):
        if (root / "bench" / "__main__.py").exists() and (root / "src" / "roost").is_dir():
            return subprocess.run([sys.executable, "-m", "bench", *arguments], cwd=root, check=False).returncode
    raise Unavailable("the benchmarks are in Roost's repository: clone it and run `make bench` there")
