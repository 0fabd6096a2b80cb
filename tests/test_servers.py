from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from tests import servers
from tests.servers import find_chromium, fresh_database, memory, postgres_server


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_server() as url:
        yield url


def folder_of(url: str) -> Path:
    return Path(parse_qs(urlsplit(url).query)["host"][0])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.postgres
def test_a_fresh_database_is_empty_and_takes_a_table(server: str) -> None:
    with fresh_database(server) as url, psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE birds (name text)")
        connection.execute("INSERT INTO birds VALUES ('Zaunkönig')")
        assert connection.execute("SELECT name FROM birds").fetchall() == [("Zaunkönig",)]
    with fresh_database(server) as url, psycopg.connect(url) as connection:
        tables = connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")
        assert tables.fetchall() == []


@pytest.mark.postgres
def test_a_fresh_database_is_dropped_even_while_someone_is_connected(server: str) -> None:
    with fresh_database(server) as url:
        left_open = psycopg.connect(url)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        psycopg.connect(url)
    left_open.close()


@pytest.mark.postgres
def test_the_server_and_its_folder_are_gone_afterwards() -> None:
    with postgres_server() as url:
        folder = folder_of(url)
        pid = int((folder / "data" / "postmaster.pid").read_text().splitlines()[0])
        assert is_alive(pid)
    assert not is_alive(pid)
    assert not folder.exists()


@pytest.mark.postgres
def test_the_server_is_stopped_when_a_test_fails() -> None:
    with pytest.raises(ZeroDivisionError), postgres_server() as url:
        folder = folder_of(url)
        raise ZeroDivisionError
    assert not folder.exists()


@pytest.mark.postgres
def test_the_wheels_server_runs_where_debian_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(servers, "DEBIANS_POSTGRES", tmp_path)
    with postgres_server() as url, fresh_database(url) as fresh, psycopg.connect(fresh) as connection:
        assert connection.info.server_version >= 18_00_00


def test_a_browser_named_in_the_environment_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOST_CHROMIUM", "/bin/sh")
    assert find_chromium() == "/bin/sh"


def test_a_missing_browser_skips_at_home_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOST_CHROMIUM", "/nowhere/chromium")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception):
        find_chromium()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception):
        find_chromium()


@pytest.mark.parametrize(("name", "value"), [("ROOM", 2**62), ("SHARED_MEMORY", "/nowhere")])
def test_files_are_on_the_disk_where_memory_has_no_room_for_them(
    monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    monkeypatch.setattr(servers, name, value)
    assert memory() is None
