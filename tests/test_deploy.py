"""The files in `deploy`, and the guide that tells how to use them: each names what exists."""

from __future__ import annotations

import re
import shlex
from configparser import ConfigParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roost.cli.main import app
from roost.settings import Settings
from tests.servers import ROOT

DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "guides" / "deploy.md").read_text()
UNITS = ("roost.service", "roost-backup.service", "roost-backup.timer")


def unit(name: str) -> dict[str, list[str]]:
    """Parse a unit: keys may be repeated, so that each has a list of values."""
    found: dict[str, list[str]] = {}
    for line in (DEPLOY / name).read_text().splitlines():
        if line and not line.startswith(("#", "[")):
            key, equals, value = line.partition("=")
            assert equals, line
            assert re.fullmatch(r"[A-Z]\w+", key), line
            found.setdefault(key, []).append(value)
    return found


def commands_of(text: str) -> list[list[str]]:
    """Return the words after each `/opt/roost/bin/roost`."""
    return [shlex.split(line) for line in re.findall(r"/opt/roost/bin/roost ([^'\n]+)", text)]


@pytest.mark.parametrize("name", UNITS)
def test_a_unit_has_its_sections_and_is_in_the_guide(name: str) -> None:
    parser = ConfigParser(strict=False, interpolation=None)
    parser.read(DEPLOY / name)
    kind = "Timer" if name.endswith("timer") else "Service"
    assert {"Unit", kind} <= set(parser.sections()) <= {"Unit", kind, "Install"}
    assert f"deploy/{name}" in GUIDE


def test_the_service_is_confined_and_restarted() -> None:
    made = unit("roost.service")
    for key in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "ProtectKernelTunables"):
        assert made[key] == ["yes"], key
    assert made["ProtectSystem"] == ["strict"]
    assert made["Restart"] == ["always"]
    assert made["StateDirectory"] == ["roost"]
    assert made["Environment"] == ["ROOST_DATA=/var/lib/roost"]
    assert float(made["TimeoutStopSec"][0]) > 2 * Settings().limits.drain
    assert made["User"] == unit("roost-backup.service")["User"]


def test_every_command_that_is_named_exists_with_its_options() -> None:
    texts = [(DEPLOY / name).read_text() for name in UNITS]
    found = [words for text in [*texts, GUIDE] for words in commands_of(text)]
    assert len(found) >= 5
    for words in found:
        path = words[: 2 if words[0] == "users" else 1]
        told = CliRunner().invoke(app, [*path, "--help"]).output
        assert told.startswith("Usage: "), words
        assert [word for word in words if word.startswith("--") and word not in told] == []


def test_the_timer_starts_the_backup() -> None:
    assert unit("roost-backup.timer")["OnCalendar"]
    [start] = unit("roost-backup.service")["ExecStart"]
    assert '"backups/roost-$(date +%%Y-%%m-%%dT%%H%%M%%S).db"' in start


def braces(name: str) -> str:
    """Return a configuration without comments; its braces are balanced."""
    text = "\n".join(line.partition("#")[0] for line in (DEPLOY / name).read_text().splitlines())
    assert text.count("{") == text.count("}") > 0
    return text


def test_nginx_passes_streams_and_websockets_on_at_once() -> None:
    text = braces("nginx.conf")
    statements = [" ".join(one.split()) for one in re.split(r"[;{}]", text) if one.strip()]
    for wanted in (
        "proxy_http_version 1.1",
        "proxy_buffering off",
        "proxy_set_header Upgrade $http_upgrade",
        "proxy_set_header Connection $roost_connection",
        "proxy_set_header Host $host",
        "proxy_set_header X-Forwarded-For $remote_addr",
        "proxy_set_header X-Forwarded-Proto $scheme",
        "proxy_read_timeout 1h",
        f"server 127.0.0.1:{Settings().port}",
    ):
        assert wanted in statements
    [size] = [one.split()[1] for one in statements if one.startswith("client_max_body_size")]
    assert int(size.removesuffix("m")) * 1024 * 1024 > Settings().limits.attachment_bytes


def test_caddy_passes_streams_on_at_once() -> None:
    text = braces("Caddyfile")
    assert f"reverse_proxy 127.0.0.1:{Settings().port}" in text
    assert "flush_interval -1" in text
    assert "read_timeout 1h" in text


def test_the_guide_names_every_file_and_the_settings_that_exist() -> None:
    for file in DEPLOY.iterdir():
        assert f"deploy/{file.name}" in GUIDE, file.name
    for name in re.findall(r"^(\w+) = ", GUIDE.partition("[profiles")[0], re.MULTILINE):
        assert name in Settings.model_fields
    assert Path(ROOT / "Containerfile").exists()


def test_the_image_can_run_a_node() -> None:
    assert "-r requirements/run.txt" in (ROOT / "Containerfile").read_text()
    locked = (ROOT / "requirements" / "run.txt").read_text()
    assert re.findall(r"^(nats-py|psycopg|psycopg-binary)==", locked, re.MULTILINE) == [
        "nats-py",
        "psycopg",
        "psycopg-binary",
    ]
