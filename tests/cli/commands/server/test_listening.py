"""Addresses of `roost up`: other machines reach it only if somebody can sign in, and nobody can read along."""

from __future__ import annotations

import ssl
from contextlib import nullcontext
from pathlib import Path

import httpx
import pytest

import roost as package
from roost.cli.commands.server.ports import local_url, page_url, require_encryption, require_sign_in
from roost.settings import Settings
from roost.stores.sqlite import owner
from tests.api.sign_in.test_mode import PROVIDER
from tests.certificates import authority
from tests.cli.running import free_port, roost, up


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path


def with_account(folder: Path) -> None:
    with package.open(f"sqlite:///{folder}/data/roost.db") as service:
        service.users.add("ann", "root", role="admin")


def refusal(folder: Path, *arguments: str) -> str:
    ended = roost(folder, "up", "--no-browser", "--port", str(free_port()), *arguments)
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


def test_another_address_is_refused_with_a_sentence_that_says_what_to_do(folder: Path) -> None:
    _, certificate, key = authority(folder)
    plain = refusal(folder, "--host", "0.0.0.0")
    assert "cannot listen on '0.0.0.0' without TLS" in plain
    assert "Use --tls-cert and --tls-key, or --behind-proxy if a proxy adds TLS" in plain
    told = refusal(folder, "--host", "0.0.0.0", "--tls-cert", str(certificate), "--tls-key", str(key))
    assert "while nobody can sign in: add an account with `roost users add NAME --admin`" in told
    assert "[oidc] or proxy_user_header" in told
    assert told.endswith("Only for this machine, use host 127.0.0.1\n")
    behind = refusal(folder, "--behind-proxy")
    assert "cannot serve a proxy while nobody can sign in" in behind
    assert behind.endswith("Only for this machine, leave out --behind-proxy\n")
    assert "name the key with --tls-key" in refusal(folder, "--tls-cert", str(certificate))


@pytest.mark.parametrize(
    ("settings", "is_encrypted", "needs_sign_in"),
    [
        (Settings(), True, False),
        (Settings(host="::1"), True, False),
        (Settings(host="10.0.0.1"), False, True),
        (Settings(host="::", behind_proxy=True), True, True),
        (Settings(behind_proxy=True), True, True),
        (Settings(host="0.0.0.0", tls_cert=Path("c.pem")), True, True),
        (Settings(host="0.0.0.0", oidc=PROVIDER), False, False),
        (Settings(behind_proxy=True, proxy_user_header="X-User", trusted_proxies=("10.0.0.1",)), True, False),
    ],
)
def test_each_way_to_listen_needs_encryption_and_sign_in(
    settings: Settings, is_encrypted: bool, needs_sign_in: bool
) -> None:
    with nullcontext() if is_encrypted else pytest.raises(package.Forbidden, match="without TLS"):
        require_encryption(settings)
    with pytest.raises(package.Forbidden, match="nobody can sign in") if needs_sign_in else nullcontext():
        require_sign_in(settings, has_accounts=False)
    require_sign_in(settings, has_accounts=True)


@pytest.mark.parametrize(
    ("settings", "page", "local"),
    [
        (Settings(), "http://localhost:1", "http://127.0.0.1:1"),
        (Settings(host="0.0.0.0", tls_cert=Path("c.pem")), "https://localhost:1", "https://127.0.0.1:1"),
        (Settings(host="::", behind_proxy=True), "http://localhost:1", "http://[::1]:1"),
        (Settings(host="::1"), "http://[::1]:1", "http://[::1]:1"),
        (Settings(host="10.0.0.1", tls_cert=Path("c.pem")), "https://10.0.0.1:1", "https://10.0.0.1:1"),
        (Settings(url="https://roost.example"), "https://roost.example", "http://127.0.0.1:1"),
    ],
)
def test_urls_are_those_that_people_and_programs_can_use(settings: Settings, page: str, local: str) -> None:
    assert (page_url(settings, 1), local_url(settings, 1)) == (page, local)


def test_with_tls_and_an_account_it_listens_everywhere_and_the_command_line_reaches_it(folder: Path) -> None:
    trusted, certificate, key = authority(folder)
    with_account(folder)
    arguments = ("--no-browser", "--host", "0.0.0.0", "--tls-cert", str(certificate), "--tls-key", str(key))
    with up(folder, *arguments) as running:
        url = f"https://localhost:{running.port}"
        assert f"Roost is running at {url}\n" in running.output
        context = ssl.create_default_context(cafile=trusted)
        with httpx.Client(verify=context, trust_env=False, headers={"Accept": "text/html"}, timeout=30) as visitor:
            page = visitor.get(f"{url}/")
            assert (page.status_code, page.headers["location"]) == (303, "/sign-in")
            assert visitor.get(f"{url}/sign-in").status_code == 200
            assert visitor.get(f"https://127.0.0.1:{running.port}/sign-in").status_code == 200
        made = roost(folder, "agents", "create", "d")
        assert (made.returncode, made.stderr) == (0, "")
        assert roost(folder, "link").stdout.startswith(f"{url}/enter?code=")
        facts = owner(running.lock)
        assert facts["url"] == f"https://127.0.0.1:{running.port}"
        examined = roost(folder, "doctor", "--host", "0.0.0.0", ROOST_TLS_CERT=str(certificate), ROOST_TLS_KEY=str(key))
        assert f"ok       server: https://127.0.0.1:{running.port}" in examined.stdout
        assert "ok       sign-in: required" in examined.stdout


def test_behind_a_proxy_the_links_have_the_public_url(folder: Path) -> None:
    with_account(folder)
    (folder / "roost.toml").write_text('url = "https://roost.example"\nbehind_proxy = true\n')
    with up(folder, "--no-browser") as running:
        assert "Roost is running at https://roost.example\n" in running.output
        link = roost(folder, "link").stdout.strip()
        assert link.startswith("https://roost.example/enter?code=")
        headers = {"Host": "roost.example", "X-Forwarded-Proto": "https", "Accept": "text/html"}
        address = f"http://127.0.0.1:{running.port}"
        with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=30) as visitor:
            assert visitor.get("/").headers["location"] == "/sign-in"
            entered = visitor.get(link.removeprefix("https://roost.example"))
            assert "; Secure" in entered.headers["set-cookie"]
