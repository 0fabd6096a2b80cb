"""Forked programs are like those that are started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests import forks
from tests.conftest import ENVIRONMENT, eventually
from tests.servers import ROOT

LOADED = 100
"""Is added to the exit code of `FACTS` if the process has loaded Roost before."""
FACTS = """
import os, signal, sys, threading
print(__name__, __spec__ and __spec__.name, __package__, sys.argv, sys.orig_argv, sys.path, globals().get("__file__"))
print(os.getcwd(), sorted({**os.environ, "LC_CTYPE": ""}.items()), os.getppid(), os.umask(0o22))
print([os.getpid() == group(0) or group(0) == group(os.getppid()) and "ours" for group in (os.getpgid, os.getsid)])
print([str(signal.getsignal(number)) for number in signal.valid_signals()], signal.pthread_sigmask(0, []))
print(os.listdir("/proc/self/fd"))
print(threading.enumerate() == [threading.main_thread()], threading.get_native_id() == os.getpid())
for stream in (sys.stdin, sys.stdout, sys.stderr):
    print(stream.encoding, stream.errors, stream.line_buffering, stream.write_through, stream.buffer.__class__)
print(repr(sys.stdin.read()))
print("an error", file=sys.stderr)
raise SystemExit(100 * ("roost.client" in sys.modules) + len(sys.argv))
"""
ENDINGS = {"1 / 0": 1, "raise KeyboardInterrupt": -2, "import sys; sys.exit('so be it')": 1, "raise SystemExit(258)": 2}
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are forked on Linux only")


def variables(**more: str) -> dict[str, str]:
    return {"PYTHONPATH": ENVIRONMENT["PYTHONPATH"], "TZ": "UTC"} | more


def python(program: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", program, *arguments]


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(
    ("unbuffered", "command"),
    [("", ["-c", FACTS, "a", "b"]), ("1", ["-m", "facts", "a"]), ("1", ["facts.py", "a", "b", "c"])],
)
def test_a_forked_program_is_like_one_that_is_started(
    tmp_path: Path, unbuffered: str, command: list[str], apart: bool
) -> None:
    (tmp_path / "facts.py").write_text(FACTS)
    options: dict[str, Any] = {"cwd": tmp_path, "start_new_session": apart, "input": "to be read\r\n", "text": True}
    options |= {"env": variables(PYTHONUNBUFFERED=unbuffered), "capture_output": True, "timeout": 60}
    started = subprocess.run([sys.executable, *command], check=False, **options)
    forked = forks.run([sys.executable, *command], **options)
    assert forked.stdout == started.stdout
    assert (forked.stderr, forked.returncode) == (started.stderr, LOADED + started.returncode)


@pytest.mark.parametrize("program", ENDINGS)
def test_it_ends_with_the_same_code_and_words(program: str) -> None:
    started, forked = (run(python(program), capture_output=True, text=True) for run in (subprocess.run, forks.run))
    assert forked.returncode == started.returncode == ENDINGS[program]
    assert forked.stderr.splitlines()[-1:] == started.stderr.splitlines()[-1:]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it(number: int) -> None:
    program = "import threading; print('running', flush=True); threading.Event().wait()"
    pipe = subprocess.PIPE
    with forks.Popen(python(program), stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "running\n"
        assert process.poll() is None
        os.kill(process.pid, number)
        assert process.wait(30) == -number
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)


def test_each_has_its_own_random_numbers() -> None:
    program = "import random; from roost.ui.messages.digest import PROCESS; print(PROCESS, random.random())"
    told = [forks.run(python(program), capture_output=True, text=True, check=True).stdout.split() for _ in range(2)]
    assert not set(told[0]) & set(told[1])


def test_it_is_started_if_it_has_variables_that_are_read_at_the_start(tmp_path: Path) -> None:
    for more in ({}, {"PYTHONPATH": str(tmp_path)}, {"PYTHONHASHSEED": "1"}, {"LD_PRELOAD": ""}):
        code = forks.run(python(FACTS), env=variables(**more), capture_output=True).returncode
        assert code // LOADED == (more == {})


def test_it_does_not_outlive_the_process_that_has_started_it() -> None:
    starting = "import os, signal, sys; from tests.forks import Popen; print(Popen(sys.argv[1:]).pid, flush=True); "
    starting += "os.kill(os.getpid(), signal.SIGKILL)"
    sleeping = python("import threading; threading.Event().wait()")
    options: dict[str, Any] = {"cwd": ROOT, "env": ENVIRONMENT, "stdout": subprocess.PIPE, "text": True, "timeout": 60}
    ended = subprocess.run(python(starting, *sleeping), check=False, **options)
    assert ended.returncode == -signal.SIGKILL
    status = Path(f"/proc/{int(ended.stdout)}/status")
    eventually(lambda: not status.exists() or "zombie" in status.read_text())
