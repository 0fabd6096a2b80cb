"""Programs that are killed at a moment by chance."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

from tests.conftest import ENVIRONMENT
from tests.forks import Popen


def run_and_kill(driver: Path, database: str, seconds: float, *more: str) -> None:
    """Start a driver, and kill it this number of seconds after it says that it is running."""
    child = Popen[bytes]([sys.executable, str(driver), database, *more], env=ENVIRONMENT, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"running\n"
    threading.Event().wait(seconds)
    child.kill()
    assert child.wait() == -signal.SIGKILL
    child.stdout.close()
