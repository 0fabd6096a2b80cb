"""Find Chromium, or install Debian's, and write its path to `.cache/chromium-path`.

Preferred is the headless shell, which Playwright prefers too: the same engine without the parts of a desktop needs a
quarter less CPU time.

With it comes libatomic, which the Node.js inside Playwright's wheel needs and a small Debian lacks.

As root it is installed with apt. As anyone else its packages are downloaded by an apt with a state of its own
and unpacked under `.cache/chromium`: that needs no privilege and changes nothing on the machine.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache"
FOUND = CACHE / "chromium-path"
LOCAL = CACHE / "chromium"
SHELL = "chromium-headless-shell"
NAMES = ("chromium", "chromium-browser", "google-chrome")
OTHERS = ("chromium-common", "fonts-noto-color-emoji", "fonts-dejavu-core", "libatomic1")
APT = ("apt-get", "--quiet=2", "--option=DPkg::Lock::Timeout=300")
INSTALL = ("install", "--yes", "--no-install-recommends")

FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{root}/usr/share/fonts</dir>
  <cachedir>{root}/font-cache</cachedir>
</fontconfig>
"""

WRAPPER = """#!/bin/sh
export LD_LIBRARY_PATH='{libraries}'
export FONTCONFIG_FILE='{root}/fonts.conf'
exec '{program}' "$@"
"""


class SetupFailed(Exception):
    """Chromium can't be had here; the message says what to do."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--force-local", action="store_true", help="unpack Chromium under .cache in any case")
    force_local = parser.parse_args().force_local
    try:
        path = (
            install_local()
            if force_local
            else known() or usable(SHELL) or install_shell() or usable(*NAMES) or install()
        )
    except SetupFailed as failure:
        print(f"No browser: {failure}", file=sys.stderr)
        return 1
    CACHE.mkdir(exist_ok=True)
    FOUND.write_text(f"{path}\n")
    return 0


def known() -> str | None:
    """Give what an earlier run has found and tried, unless the environment now asks for another."""
    if not FOUND.exists():
        return None
    path = FOUND.read_text().strip()
    if os.environ.get("ROOST_CHROMIUM", path) != path or not os.access(path, os.X_OK):
        return None
    return path


def usable(*names: str) -> str | None:
    return first_working(installed(names)) if node_starts() else None


def node_starts() -> bool:
    if node := find_node():
        return subprocess.run([node, "--version"], capture_output=True, check=False).returncode == 0
    return True


def find_node() -> Path | None:
    spec = find_spec("playwright")
    return Path(spec.origin).parent / "driver" / "node" if spec and spec.origin else None


def installed(names: Iterable[str]) -> Iterator[str]:
    if asked_for := os.environ.get("ROOST_CHROMIUM"):
        yield asked_for
    yield from filter(None, map(shutil.which, names))


def first_working(paths: Iterable[str]) -> str | None:
    return next((path for path in paths if works(path)), None)


def works(path: str) -> bool:
    """Return whether it really shows a page: a stub or a missing library would be noticed only in the tests."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    quiet = ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    profile = CACHE / "chromium-profile"
    command = [path, *options, *quiet, f"--user-data-dir={profile}", "--dump-dom", "data:text/html,ready"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"{path} does not start: {error}", file=sys.stderr)
        return False
    finally:
        shutil.rmtree(profile, ignore_errors=True)
    if "ready" in result.stdout:
        return True
    print(f"{path} does not show a page: {result.stderr[-2000:]}", file=sys.stderr)
    return False


def install_shell() -> str | None:
    """Install the headless shell for all users; not every system has it."""
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return None
    print("Installing Chromium (once) …", flush=True)
    run(*APT, "update", may_fail=True)
    run(*APT, *INSTALL, SHELL, *OTHERS, may_fail=True)
    return usable(SHELL)


def install() -> str:
    if not shutil.which("apt-get"):
        raise SetupFailed("install Chromium, or name one with ROOST_CHROMIUM.")
    if os.geteuid() != 0:
        return install_local()
    run(*APT, *INSTALL, "chromium", *OTHERS)
    return usable(*NAMES) or give_up()


def install_local() -> str:
    print("Unpacking Chromium under .cache/chromium (once) …", flush=True)
    shutil.rmtree(LOCAL, ignore_errors=True)
    root = LOCAL / "root"
    root.mkdir(parents=True)
    for package in download(LOCAL / "apt"):
        run("dpkg", "-x", str(package), str(root))
    shutil.rmtree(LOCAL / "apt")
    (root / "fonts.conf").write_text(FONTS.format(root=root))
    if node := find_node():
        write_wrapper(root, "node", node)
    return first_working([write_wrapper(root, "chromium", root / "usr/lib/chromium" / SHELL)]) or give_up()


def give_up() -> str:
    raise SetupFailed("Debian's Chromium does not run here; name another with ROOST_CHROMIUM.")


def download(folder: Path) -> list[Path]:
    """Download what is missing here, by apt with state, cache and locks of its own."""
    for part in ("state/lists/partial", "cache/archives/partial"):
        (folder / part).mkdir(parents=True)
    settings = {
        "APT::Sandbox::User": "",
        "Debug::NoLocking": "1",
        "Dir::Cache": str(folder / "cache"),
        "Dir::State": str(folder / "state"),
        "Dir::State::status": "/var/lib/dpkg/status",
    }
    options = [f"--option={name}={value}" for name, value in settings.items()]
    run(*APT, *options, "update", may_fail=True)
    # With --force-local Chromium may be here already, and is wanted all the same.
    run(*APT, *options, *INSTALL, "--download-only", "--reinstall", SHELL, *OTHERS)
    return sorted((folder / "cache" / "archives").glob("*.deb"))


def library_folders(root: Path) -> list[Path]:
    """Libraries private to a package (pulseaudio's) are one folder down, and must be named as well."""
    patterns = ("usr/lib/chromium", "lib/*-linux-gnu*", "usr/lib/*-linux-gnu*", "usr/lib/*-linux-gnu*/*")
    return [path for pattern in patterns for path in sorted(root.glob(pattern)) if path.is_dir()]


def write_wrapper(root: Path, name: str, program: Path) -> str:
    libraries = ":".join(str(folder) for folder in library_folders(root))
    wrapper = root / name
    wrapper.write_text(WRAPPER.format(root=root, libraries=libraries, program=program))
    wrapper.chmod(0o755)
    return str(wrapper)


def run(*command: str, may_fail: bool = False) -> None:
    """Run it quietly. An update may fail: one foreign source out of reach does not hinder the install."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    result = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if result.returncode != 0 and not may_fail:
        raise SetupFailed(f"{command[0]} failed:\n{(result.stdout + result.stderr)[-4000:]}")


if __name__ == "__main__":
    sys.exit(main())
