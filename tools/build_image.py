"""Build the container image and start it; without a container engine, run the steps of the Containerfile in a chroot.

The chroot has the same Python, of Debian. It needs root and debootstrap, and is removed afterwards.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

PROJECT = Path(__file__).resolve().parent.parent
CONTAINERFILE = PROJECT / "Containerfile"
PORT = 8599
START_TIMEOUT = 60.0
ENGINES = ("podman", "docker")
RELEASES = {"3.13": "trixie", "3.11": "bookworm"}
"""Debian's releases by their Python."""
DEBIAN_PACKAGES = ("python3", "python3-venv", "ca-certificates")
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def main() -> int:
    engine = next((name for name in ENGINES if _works(name)), None)
    if engine is not None:
        return _with_engine(engine)
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        print("make image needs podman or docker, or root and debootstrap: apt-get install debootstrap")
        return 1
    return _with_chroot()


def _works(engine: str) -> bool:
    found = shutil.which(engine)
    return found is not None and subprocess.run([found, "info"], capture_output=True).returncode == 0


def _with_engine(engine: str) -> int:
    subprocess.run([engine, "build", "-t", "roost", "-f", CONTAINERFILE, PROJECT], check=True)
    name = f"roost-image-{os.getpid()}"
    return _try_out(
        [engine, "run", "--rm", "--network=host", f"--name={name}", "roost", "roost", "up", *_options()],
        lambda: subprocess.run([engine, "stop", name], check=True, capture_output=True),
    )


def _with_chroot() -> int:
    with tempfile.TemporaryDirectory(prefix="roost-image-") as folder:
        image = Image(Path(folder) / "root")
        for number, (instruction, argument) in enumerate(steps(CONTAINERFILE.read_text()), 1):
            print(f"{number}. {instruction} {argument}", flush=True)
            image.apply(instruction, argument)
        print("Starting it …", flush=True)
        with image.mounted():
            return _try_out(image.command([*image.start, *_options()[1:]]), lambda: None)


def _options() -> list[str]:
    return ["--no-browser", "--port", str(PORT)]


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield the instructions of a Containerfile with their arguments."""
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    for step in re.sub(r"\\\n\s*", "", "\n".join(lines)).split("\n"):
        if step:
            instruction, _, argument = step.partition(" ")
            yield instruction, argument.strip()


@dataclass
class Image:
    """A root folder to which the steps are applied."""

    root: Path
    workdir: str = "/"
    user: str = "root"
    environment: dict[str, str] = field(
        default_factory=lambda: {
            "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "PIP_CERT": CERTIFICATES,
            **_proxies(os.environ),
        }
    )
    start: tuple[str, ...] = ()

    def apply(self, instruction: str, argument: str) -> None:
        match instruction:
            case "FROM":
                self._bootstrap(argument)
            case "WORKDIR":
                self.workdir = argument
                self._inside(argument).mkdir(parents=True, exist_ok=True)
            case "COPY":
                self._copy(*argument.split())
            case "RUN":
                with self.mounted():
                    subprocess.run(self.command(["sh", "-ec", argument]), check=True)
            case "USER":
                self.user = argument
            case "ENV":
                name, _, value = argument.partition("=")
                self.environment[name] = value
            case "CMD":
                self.start = tuple(json.loads(argument))
            case _:
                raise SystemExit(f"the Containerfile has an instruction that a chroot has no step for: {instruction}")

    def command(self, arguments: list[str]) -> list[str]:
        """Return a command that runs in the image, as its user and in its working directory."""
        settings = [f"{name}={value}" for name, value in self.environment.items()]
        enter = ["sh", "-c", 'cd "$0" && exec "$@"', self.workdir]
        return ["chroot", f"--userspec={self.user}", str(self.root), "env", "-i", *settings, *enter, *arguments]

    @contextmanager
    def mounted(self) -> Iterator[None]:
        """Give the image the devices and processes of this machine, as a container engine does."""
        mounts = [("--rbind", Path("/dev"), self.root / "dev"), ("--rbind", Path("/proc"), self.root / "proc")]
        for how, source, target in mounts:
            subprocess.run(["mount", how, "--make-rslave", source, target], check=True)
        try:
            yield
        finally:
            for _, _, target in mounts:
                subprocess.run(["umount", "--recursive", "--lazy", target], check=True)

    def _bootstrap(self, base: str) -> None:
        version = re.fullmatch(r"python:(3\.\d+)-slim", base)
        if version is None or version[1] not in RELEASES:
            raise SystemExit(f"no release of Debian is known with the Python of {base}: add it to RELEASES")
        packages = f"--include={','.join(DEBIAN_PACKAGES)}"
        subprocess.run(
            ["debootstrap", "--variant=minbase", packages, RELEASES[version[1]], self.root],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        shutil.copy(CERTIFICATES, self._inside(CERTIFICATES))
        shutil.copy("/etc/resolv.conf", self._inside("/etc/resolv.conf"))
        # As in the image, Python and pip are in /usr/local, without the packages of Debian.
        subprocess.run(["chroot", self.root, "python3", "-m", "venv", "/usr/local"], check=True)

    def _copy(self, *names: str) -> None:
        *sources, target = names
        folder = self._inside(os.path.join(self.workdir, target))
        for name in sources:
            source = PROJECT / name
            if source.is_dir():
                shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                folder.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, folder)

    def _inside(self, path: str) -> Path:
        return self.root / path.lstrip("/")


def _proxies(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a machine behind a proxy or with an index of its own has set for pip."""
    names = [*(f"{kind}_proxy" for kind in ("http", "https", "no")), "PIP_INDEX_URL"]
    return {name: environment[name] for one in names for name in (one, one.upper()) if name in environment}


def _try_out(command: list[str], stop: Callable[[], object]) -> int:
    """Start Roost and look whether its pages respond."""
    process = subprocess.Popen(command)
    try:
        _wait_until_ready(process)
        with urlopen(f"http://127.0.0.1:{PORT}/") as response:
            page = response.read().decode()
        print(f"It is ready, and its page has {len(page)} characters.")
        return 0 if "Roost" in page else 1
    finally:
        stop()
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        process.wait(START_TIMEOUT)


def _wait_until_ready(process: subprocess.Popen[bytes]) -> None:
    latest = time.monotonic() + START_TIMEOUT
    while time.monotonic() < latest:
        if process.poll() is not None:
            raise SystemExit(f"roost ended with exit code {process.returncode}")
        with suppress(URLError, ConnectionError), urlopen(f"http://127.0.0.1:{PORT}/readyz") as response:
            if response.status == 200:
                return
        time.sleep(0.2)
    raise SystemExit(f"roost did not become ready within {START_TIMEOUT:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
