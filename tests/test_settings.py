"""Settings: the file, the variables, and sentences that say where and what."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import roost
from roost.settings import Settings, load
from roost.settings_errors import line_of
from tests.conftest import settled

GOOD = """
store = "sqlite:///here.db"
port = 9000
default_profile = "clerk"

[profiles.clerk]
brain = "echo"
description = "Repeats."
instructions = \"\"\"
Be brief.
port = 1
\"\"\"

[limits]
message_bytes = 1000
drain = 1.5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "roost.toml"


def refusal(file: Path, text: str, environ: dict[str, str] | None = None) -> str:
    file.write_text(text)
    with pytest.raises(roost.Invalid) as error:
        load(file, environ or {})
    return str(error.value).replace(str(file), "F")


@pytest.mark.parametrize(
    ("profile", "told"),
    [
        ('brain = "llm"', r"line 1: profiles.a.model must be \"provider:name\""),
        ('brain = "llm"\nmodel = "gpt"', r"line 3: profiles.a.model must be \"provider:name\""),
        ('brain = "echo"\nbase_url = "models.example"', r"line 3: profiles.a.base_url must be a URL"),
        ('brain = "echo"\nkey = "sk-canary-0123"', r"line 3: profiles.a.key must be the name of a variable"),
        ('brain = "echo"\nthinking = "hard"', r"line 3: profiles.a.thinking must be"),
        ('brain = "echo"\ntokens_per_day = 0', r"line 3: profiles.a.tokens_per_day must be"),
    ],
)
def test_an_invalid_model_is_reported_with_its_line(tmp_path: Path, profile: str, told: str) -> None:
    file = tmp_path / "roost.toml"
    file.write_text(f"[profiles.a]\n{profile}\n")
    with pytest.raises(roost.Invalid, match=told) as raised:
        load(file, environ={})
    assert "canary" not in str(raised.value)


def test_a_good_file_is_read(file: Path) -> None:
    file.write_text(GOOD)
    settings = load(file, {})
    assert (settings.store, settings.port, settings.host) == ("sqlite:///here.db", 9000, "127.0.0.1")
    assert settings.limits == roost.Limits(message_bytes=1000, drain=1.5)
    assert settings.profile_list()[0].instructions == "Be brief.\nport = 1\n"


def test_variables_override_the_file_and_options_override_both(file: Path) -> None:
    file.write_text(GOOD)
    environ = {"ROOST_PORT": "9001", "ROOST_LIMITS__MESSAGE_BYTES": "5", "ROOST_HOSTS": "a.example,b.example"}
    settings = load(file, environ)
    assert (settings.port, settings.limits.message_bytes, settings.limits.drain) == (9001, 5, 1.5)
    assert settings.hosts == ("a.example", "b.example")
    assert load(file, environ, port=9002, host=None).port == 9002


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("port = 'x'", "F, line 1: port must be a whole number, not 'x'"),
        ("\nport = 1.5", "F, line 2: port must be a whole number, not 1.5"),
        ("port = true", "F, line 1: port must not be true"),
        ("host = 3", "F, line 1: host must be text in quotes, not 3"),
        ("user = ''", "F, line 1: user must not be empty"),
        ("hosts = 'a'", "F, line 1: hosts must be a list, not 'a'"),
        ("data = 3", "F, line 1: data must be a path in quotes, not 3"),
        ("log = 'loud'", "F, line 1: log must be 'debug', 'info', 'warning' or 'error', not 'loud'"),
        ("limits = 3", "F, line 1: limits must be a table, not 3"),
        ("[limits]\ndrain = 'x'", "F, line 2: limits.drain must be a number, not 'x'"),
        ("[limits]\ndrain = nan", "F, line 2: limits.drain must be a finite number, not nan"),
        ("[profiles]\na = 3", "F, line 2: profiles.a must be a table, not 3"),
        ("# a\n\nport = 70000", "F, line 3: port must be less than or equal to 65535, not 70000"),
        ("host = '''a\nb'''\nport = 1\nprot = 1", "F, line 4: there is no setting 'prot': did you mean 'port'?"),
        ("[limits]\nmessage_byte = 1", "F, line 2: there is no setting 'limits.message_byte': did you mean 'message"),
        ("[limits]\nmemory_chars = 1", "F, line 2: there is no setting 'limits.memory_chars': it is now 'state_chars'"),
        ("[limits]\ntalks_in_memory = 1", "no setting 'limits.talks_in_memory': it is now 'talks_in_ram'"),
        ("memory_chars = 1", "F, line 1: there is no setting 'memory_chars': use one of"),
        ("[limits]\nattempts = 'many'", "F, line 2: limits.attempts must be a whole number, not 'many'"),
        ("[limits]\n\nattempts = 0", "F, line 3: limits.attempts must be a whole number greater than 0"),
        ("[limits]\nkeep_mail_days = -1", "F, line 2: limits.keep_mail_days must be a number, 0 (no bound) or greater"),
        ("[profiles.a]\nbrain = 'echo'\nmodle = 'x'", "F, line 3: there is no setting 'profiles.a.modle': did you"),
        ("[profiles.a]\nmodel = 'x'", "F, line 1: profiles.a.brain is missing"),
        ("[profiles.a]\nbrain = 'echo'\ntemperature = 3", "F, line 3: profiles.a.temperature must be less than"),
        (
            f"[profiles.a]\nbrain = 'echo'\ntools = ['{'t' * 201}']",
            "F, line 3: profiles.a.tools.0 must have at most 200",
        ),
        ("[profiles.a]\nbrain = 'import os'", "F, line 2: profiles.a.brain must be a built-in brain, or mod"),
        ("zzz = 1", "F, line 1: there is no setting 'zzz': use one of"),
        ("profiles = 3", "F, line 1: profiles must be a table, not 3"),
        ("port = 1\nport = 2", "F, line 2"),
        ("port = 1\n= 3\n", "F, line 2, column 1: this is not valid TOML"),
        ("port = 1\nhost = 'x", "F, line 2"),
        ("secret = 'short'", "F, line 1: secret must have at least 16 characters"),
        ("url = 'roost.example'", "F, line 1: url must be a URL such as https://roost.example.com"),
        ("url = 'https://a.example/path'", "F, line 1: url must be a URL"),
        ("behind_proxy = 'maybe'", "F, line 1: behind_proxy must be true or false"),
        ("tls_key = 'key.pem'", "tls_cert must be given too"),
        ("proxy_user_header = 'X-User'", "trusted_proxies must be given too"),
        ("proxy_user_header = 'X User'", "F, line 1: proxy_user_header must be the name of a header"),
    ],
)
def test_an_error_has_its_key_and_its_line(file: Path, text: str, told: str) -> None:
    assert told in refusal(file, text)


def test_all_errors_are_reported_at_once(file: Path) -> None:
    told = refusal(file, "port = 'x'\nlog = 'loud'").splitlines()
    assert [sentence.partition(":")[0] for sentence in told] == ["F, line 1", "F, line 2"]


def test_an_invalid_variable_is_reported_by_its_name(file: Path) -> None:
    assert refusal(file, "", {"ROOST_PORT": "many"}) == "ROOST_PORT: port must be a whole number, not 'many'"
    told = refusal(file, "", {"ROOST_LIMITS__MESSAGE_BYTE": "1"})
    assert told.startswith("ROOST_LIMITS__MESSAGE_BYTE: there is no setting")


def test_a_bad_secret_is_not_repeated(file: Path) -> None:
    assert "hunter2" not in refusal(file, "secret = 'hunter2'")
    assert "hunter2" not in repr(Settings.model_validate({"secret": "hunter2" * 5}))


def test_a_file_that_is_missing_or_no_text_is_reported(file: Path) -> None:
    with pytest.raises(roost.Invalid, match="cannot read the settings"):
        load(file, {})
    file.write_bytes(b"port = 1\n\xff\xfe")
    with pytest.raises(roost.Invalid, match=r"line 2: this is not UTF-8"):
        load(file, {})


def test_a_line_is_found_whatever_stands_around_it() -> None:
    text = '# x\na = [\n  1,\n]\n[t]\n\n"b c" = """\nx\n"""\nd.e = 1\nf = {g = 2}\n'
    lines = {
        path: line_of(text, path) for path in [("a",), ("t",), ("t", "b c"), ("t", "d", "e"), ("t", "f", "g"), ("z",)]
    }
    assert list(lines.values()) == [2, 5, 7, 10, 11, None]


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("127.9.9.9", True),
        ("0.0.0.0", False),
        ("192.168.0.1", False),
        ("example.com", False),
    ],
)
def test_loopback_is_known(host: str, own: bool) -> None:
    assert Settings(host=host).is_loopback is own


def test_open_takes_profiles_and_limits_from_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "clerk_brain.py").write_text("async def clerk(turn):\n    yield 'at your service'\n")
    (tmp_path / "roost.toml").write_text("[profiles.clerk]\nbrain = 'clerk_brain:clerk'\n[limits]\nmessage_bytes = 10")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    with roost.open("sqlite:///here.db") as service:
        talk = service.create_talk_session("ann")
        with pytest.raises(roost.Invalid, match="too long"):
            service.add_message("ann", talk, "x" * 11)
        service.add_message("ann", talk, "hi")
        assert settled(service, "ann", talk)[-1].content == "at your service"


def test_open_takes_the_store_from_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROOST_STORE", f"sqlite:///{tmp_path}/there.db")
    with roost.open():
        assert (tmp_path / "there.db").exists()


# --- sign-in and networks ------------------------------------------------------------------------------

OIDC = "[oidc]\nissuer = 'https://id.example'\nclient_id = 'roost'\n"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("", "F, line 1: oidc.allowed_domains must name who may sign in"),
        ("allowed_domains = ['*']\nclient_secret = 'canary-s3cret'", "line 5: oidc.client_secret must be the name of"),
        ("allowed_domains = ['*']\nscopes = ['email']", 'oidc.scopes must contain "openid"'),
        ("allowed_domains = ['*']\naudience = 'roost'", "line 5: oidc.audience must not be the client_id"),
        ("domains = ['*']", "line 4: there is no setting 'oidc.domains': did you mean 'allowed_domains'?"),
    ],
)
def test_an_invalid_provider_is_reported_with_its_line(file: Path, more: str, told: str) -> None:
    said = refusal(file, OIDC + more)
    assert told in said
    assert "canary" not in said


@pytest.mark.parametrize(
    "issuer", ["http://id.example", "id.example", "https://ann@id.example", "https://id.example?x"]
)
def test_a_provider_is_reached_with_tls(file: Path, issuer: str) -> None:
    text = OIDC.replace("https://id.example", issuer) + "allowed_domains = ['*']"
    assert "F, line 2: oidc.issuer must be" in refusal(file, text)


def test_a_provider_is_configured_by_variables(file: Path) -> None:
    environ = {
        "ROOST_OIDC__ISSUER": "http://127.0.0.1:9",
        "ROOST_OIDC__CLIENT_ID": "roost",
        "ROOST_OIDC__ALLOWED_DOMAINS": "a.example,B.example",
        "ROOST_OIDC__ALLOWED_EMAILS": "ann@c.example",
        "ROOST_BEHIND_PROXY": "true",
    }
    file.write_text("")
    settings = load(file, environ)
    assert settings.oidc is not None
    found = {one: settings.oidc.allows(one) for one in ("bob@b.example", "Ann@c.example", "bob@c.example", None)}
    assert found == {"bob@b.example": True, "Ann@c.example": True, "bob@c.example": False, None: False}
    assert settings.is_exposed
    assert settings.proxies == ("127.0.0.1", "::1")


def test_files_of_tls_are_searched_beside_the_settings(file: Path) -> None:
    file.write_text("tls_cert = 'server.pem'\nurl = 'https://Roost.example/'")
    settings = load(file, {})
    assert settings.tls_files == (file.parent / "server.pem", file.parent / "server.pem")
    assert settings.url == "https://roost.example"
    assert settings.public_hosts == ("127.0.0.1", "roost.example")


@pytest.mark.parametrize(
    ("options", "networks"),
    [
        ({}, ("127.0.0.0/8", "::1/128")),
        ({"hosts": ["roost.example"]}, ()),
        ({"behind_proxy": True}, ()),
        ({"trusted_proxies": ["10.0.0.1"]}, ()),
        ({"url": "https://roost.example"}, ()),
        ({"hosts": ["roost.example"], "webhook_networks": ["10.0.0.0/8"]}, ("10.0.0.0/8",)),
        ({"webhook_networks": []}, ()),
    ],
)
def test_webhooks_reach_loopback_only_on_a_server_of_one_machine(
    options: dict[str, Any], networks: tuple[str, ...]
) -> None:
    assert Settings(**options).allowed_networks == networks


def test_networks_of_webhooks_are_checked_and_can_be_a_variable() -> None:
    assert load(environ={"ROOST_WEBHOOK_NETWORKS": "10.0.0.0/8,fd00::/8"}).webhook_networks == (
        "10.0.0.0/8",
        "fd00::/8",
    )
    with pytest.raises(roost.Invalid, match="must be addresses or networks"):
        load(environ={"ROOST_WEBHOOK_NETWORKS": "everything"})
