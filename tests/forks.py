"""Python programs that need not load what they run on: each is a fork of one process that has loaded it all.

`Popen` and `run` are those of `subprocess`, for `python -m MODULE`, `python -c PROGRAM` and `python FILE`. The program
is a process of its own all the same, and a child of this one: it has its own folder, environment, files, signal
handlers and random numbers, and is killed and waited for. Use `subprocess` where the start itself is tested: what is
imported, memory, time, variables and options that Python itself reads.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import runpy
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any, AnyStr, Generic, Literal, NoReturn, TextIO

import roost
from roost.ui.messages import digest

ROOT = Path(__file__).parents[1]
SOURCE = Path(roost.__file__).parents[1]
LOADED = (
    "anyio._backends._asyncio",
    "google.protobuf.json_format",
    "pydantic.v1",
    "roost.api.pages.mounted",
    "roost.client",
    "roost.stores.postgres",
    "roost.transports.nats",
    "roost.ui.config",
    "roost.ui.shell.navigation",
    "streamlit.web.server.starlette",
    *(
        f"roost.cli.commands.{name}"
        for name in ("agents", "chat.chat", "mail", "meetings", "schedules", "server.doctor")
    ),
    *(f"roost.cli.commands.{name}" for name in ("server.up", "talks.branches", "talks.talks", "talks.transcripts")),
    *(f"roost.cli.commands.{name}" for name in ("approvals", "dead_letters", "events", "models", "runs", "tasks")),
)
READ_AT_START = ("LANG", "LC_", "LD_", "MALLOC_", "PYTHON")
"""Variables that the dynamic linker, the C library and Python read."""
HEEDED = {"PYTHONPATH", "PYTHONUNBUFFERED"}
"""Variables of these that a fork heeds."""
PARENT_DEATH_SIGNAL, CHILD_SUBREAPER = 1, 36
"""Options of prctl(2)."""


class Popen(subprocess.Popen[AnyStr], Generic[AnyStr]):
    """A program that is forked. It ends with the process that has started it, by SIGKILL at the latest.

    It is started, not forked, if it has variables that are read then, a `PYTHONPATH` of its own, or no Linux.
    """

    def _execute_child(self, *given: Any) -> None:
        (python, *command), executable, before, _, passed, folder, variables, _, _, shell, *ends = given[:16]
        *_, new_session, group = given
        environment = dict(os.environ if variables is None else variables)
        if not _is_forkable(environment):
            super()._execute_child(*given)  # type: ignore[misc]
            return
        assert python == sys.executable, "only Python is forked"
        assert not any((executable, before, passed, shell, group != -1)), "forks do not have this option"
        order = {
            "command": [os.fspath(word) for word in command],
            "folder": os.fspath(folder or Path.cwd()),
            "environment": environment,
            "new_session": new_session,
            "parent": os.getpid(),
        }
        files = [number if end == -1 else end for number, end in enumerate((ends[0], ends[3], ends[5]))]
        self.pid = _server().fork(order, files)
        self._child_created = True
        self._close_pipe_fds(*ends)  # type: ignore[attr-defined]


def run(
    args: Sequence[Any],
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> subprocess.CompletedProcess[Any]:
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options["stdout"] = options["stderr"] = subprocess.PIPE
    with Popen[Any](args, **options) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(args, process.returncode, output, errors)
    if check:
        done.check_returncode()
    return done


class _Server:
    """The process that forks. One that is forked becomes a child of this process: its own parent ends at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            number = theirs.fileno()
            self._process = subprocess.Popen(
                [sys.executable, "-c", f"from tests.forks import serve; serve({number})"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(SOURCE)},
                stdin=subprocess.DEVNULL,
                pass_fds=[number],
            )
        atexit.register(self._close)

    def fork(self, order: dict[str, Any], files: list[int]) -> int:
        with self._lock:
            _prctl(CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._orders, [json.dumps(order).encode()], files)
                return int(self._orders.recv(20))
            except BaseException:  # such as a time limit: the next program must not get the answer to this order
                _server_of.cache_clear()
                raise
            finally:
                _prctl(CHILD_SUBREAPER, 0)

    def _close(self) -> None:
        self._orders.close()
        self._process.kill()
        self._process.wait()


def _server(lock: threading.Lock = threading.Lock()) -> _Server:  # noqa: B008 — one for all calls
    with lock:
        return _server_of(os.getpid())


_server_of = cache(lambda _: _Server())
"""By process: those that share the tests are forks themselves."""


def serve(number: int) -> None:
    """Fork a program for each order, and answer with its process id."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for name in LOADED:
        import_module(name)
    import_module("roost.api.routes.rest")._namespaces()  # a server builds its routes once; so do all of these together
    assert len(os.listdir("/proc/self/task")) == 1, "a thread does not survive a fork"
    del sys.path[:2]  # the folder of this process, and SOURCE
    gc.collect()
    gc.freeze()  # memory that is not touched stays shared
    orders = socket.socket(fileno=number)
    while True:
        text, files, _, _ = socket.recv_fds(orders, 1 << 18, 3)
        if not text:
            return
        reading, writing = os.pipe()
        if not (between := os.fork()):
            between = os.getpid()
            if program := os.fork():
                os.write(writing, str(program).encode())
                os._exit(0)
            for file in (reading, writing, orders.detach()):
                os.close(file)
            _become(json.loads(text), files, between)
        os.waitpid(between, 0)
        os.close(writing)
        orders.send(os.read(reading, 20))
        for file in (reading, *files):
            os.close(file)


def _become(order: dict[str, Any], files: list[int], between: int) -> NoReturn:
    """Run the program, and end as Python does, but without taking apart all that was loaded."""
    code = 1
    try:
        _prepare(order, files, between)
        code = _execute(*order["command"])
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
    finally:
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code)


def _prepare(order: dict[str, Any], files: list[int], between: int) -> None:
    while os.getppid() == between:
        os.sched_yield()
    _prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)
    if os.getppid() != order["parent"]:
        os._exit(1)
    if order["new_session"]:
        os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.stdin = sys.__stdin__ = _stream(0, "rb", sys.stdin)  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "wb", sys.stdout)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "wb", sys.stderr)  # type: ignore[misc]
    digest.PROCESS = secrets.token_hex(8)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stream(number: int, mode: Literal["rb", "wb"], like: TextIO) -> TextIOWrapper:
    direct = bool(os.environ.get("PYTHONUNBUFFERED"))
    return TextIOWrapper(
        open(number, mode, 0 if direct and mode == "wb" else -1, closefd=False),
        like.encoding,
        like.errors,
        newline="\n",
        line_buffering=not direct and (number == 2 or os.isatty(number)),
        write_through=direct,
    )


def _execute(option: str, *arguments: str) -> int:
    """Run the program as `__main__`; return its exit code, or the negative number of the signal that ends it."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    sys.orig_argv = [sys.executable, option, *arguments]
    sys.argv = list(arguments) if option == "-m" else [option, *arguments[option == "-c" :]]
    first = {"-m": os.getcwd(), "-c": ""}.get(option, str(Path(option).resolve().parent))
    sys.path[:0] = [first, *_paths(os.environ)]
    try:
        if option == "-m":
            runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]
        elif option == "-c":
            exec(compile(arguments[0], "<string>", "exec"), vars(main))
        else:
            vars(main)["__file__"] = os.path.abspath(option)
            exec(compile(Path(option).read_bytes(), option, "exec"), vars(main))
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return (ended.code or 0) & 0xFF
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT if isinstance(error, KeyboardInterrupt) else 1
    return 0


def _is_forkable(variables: Mapping[str, str]) -> bool:
    ours, places = os.environ.items(), {str(SOURCE), str(ROOT)}
    read = {item for item in variables.items() if item[0].startswith(READ_AT_START) and item[0] not in HEEDED}
    return sys.platform == "linux" and read <= ours and places.issuperset(_paths(variables))


def _paths(variables: Mapping[str, str]) -> list[str]:
    return [path for path in variables.get("PYTHONPATH", "").split(os.pathsep) if path]


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None).prctl(option, value, 0, 0, 0):
        raise OSError(f"prctl({option}) has failed")
