"""Settings: `roost.toml` and `ROOST_…` variables, read once, then frozen.

Errors name the key, its line in the file (or its variable), and the expected value.
"""

from __future__ import annotations

import ipaddress
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from roost.cluster_settings import ClusterSettings
from roost.core.limits.limits import BadLimit, Limits
from roost.core.values.checks import NAME_LENGTH
from roost.core.values.secrets import is_plain, passwords_in
from roost.core.webhooks.networks import LOOPBACK
from roost.errors import Invalid
from roost.oidc_settings import OidcSettings, is_loopback
from roost.ports import Profile
from roost.ports.servers import ServerConfig
from roost.ports.tools import LIMIT, OUTPUT
from roost.settings_errors import hint, place, sentence

FILE = "roost.toml"
PREFIX = "ROOST_"
OTHER_VARIABLES = {
    "ROOST_CONFIG",
    "ROOST_SECRETS",
    "ROOST_DEBUG",
    "ROOST_CHROMIUM",
    "ROOST_UI_PORT",
    "ROOST_TOKEN",
    "ROOST_REJOINING",
}
"""Variables that are not settings and read elsewhere."""

LISTS = {
    ("hosts",),
    ("trusted_proxies",),
    ("webhook_networks",),
    ("cluster", "nats"),
    *(("oidc", name) for name in ("scopes", "allowed_domains", "allowed_emails", "admins")),
}
"""Settings that are comma-separated lists in variables."""
BOOLEANS = {("behind_proxy",), ("vision",)}
"""Settings that are true or false, by the end of their path."""

Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


# Its length is no part of the pattern: two hundred times all letters of Unicode take 0.05 s at every start.
Pattern = Annotated[str, Field(pattern=r"^[\w.\-*]+$", max_length=200)]


class ServerSettings(_Frozen):
    """Table `[mcp.NAME]`: a tool server that is started by a command, or reached by a URL."""

    command: tuple[Annotated[str, Field(min_length=1)], ...] = ()
    url: Annotated[str, Field(pattern=r"^https?://[^\s/]")] | None = None
    environment: tuple[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")], ...] = ()
    token: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{2,80}$")] | None = None
    limit: Annotated[float, Field(gt=0)] = LIMIT
    output: Annotated[int, Field(ge=1)] = OUTPUT
    approval: tuple[Pattern, ...] = ()

    @model_validator(mode="after")
    def _one_way(self) -> ServerSettings:
        if bool(self.command) == bool(self.url):
            raise ValueError("must have either a command or a url")
        return self


class ProfileSettings(_Frozen):
    """Table `[profiles.NAME]`: a built-in brain or `module:function`, and its options."""

    brain: Annotated[str, Field(min_length=1, pattern=r"^[\w.]+(:\w+)?$")]
    description: str = ""
    model: Name | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    instructions: Annotated[str, Field(min_length=1, max_length=100_000)] | None = None
    base_url: Annotated[str, Field(pattern=r"^https?://[^\s/]")] | None = None
    key: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{2,80}$")] | None = None
    thinking: Literal["off", "low", "medium", "high"] | None = None
    window: Annotated[int, Field(ge=1_000)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1, le=10_000)] = 50
    tokens_per_run: Annotated[int, Field(ge=1)] | None = None
    tokens_per_day: Annotated[int, Field(ge=1)] | None = None
    seconds_per_run: Annotated[float, Field(gt=0)] | None = None
    patience: Annotated[float, Field(gt=0)] = 120.0
    agent: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    recent_messages: Annotated[int, Field(ge=2, le=100_000)] | None = None
    tools: tuple[Pattern, ...] | None = None
    tool_choice: Literal["auto", "required"] = "auto"
    vision: bool = False

    @model_validator(mode="after")
    def _asked(self) -> ProfileSettings:
        if self.brain == "llm" and (self.model is None or not re.fullmatch(r"[^:\s]+:\S.*", self.model)):
            raise _invalid("model", 'must be "provider:name", such as "openai:gpt-5-mini"')
        return self


class Settings(_Frozen):
    """All settings; see `docs/reference` for their meaning."""

    store: str | None = None
    host: Name = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8501
    hosts: tuple[str, ...] = ()
    """Further host names of this server, such as the one of a proxy."""
    trusted_proxies: tuple[str, ...] = ()
    """Addresses and networks of proxies whose forwarded client addresses are trusted."""
    behind_proxy: bool = False
    """A proxy adds TLS, and passes on what it receives from other machines."""
    proxy_user_header: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,80}$")] | None = None
    """Header in which a trusted proxy names the user that it has signed in."""
    url: str | None = None
    """URL at which browsers reach this server."""
    tls_cert: Path | None = None
    tls_key: Path | None = None
    """Key of the certificate; by default it is in the same file."""
    oidc: OidcSettings | None = None
    cluster: ClusterSettings | None = None
    webhook_networks: tuple[str, ...] | None = None
    """Networks besides the public ones that webhooks may reach; by default loopback while nobody else can sign in."""
    data: Path | None = None
    user: Name | None = None
    """User of the command line; by default the name of the account."""
    server: str | None = None
    """Server of the command line, in place of a store on this machine."""
    ca_file: Path | None = None
    """Certificates by which the command line trusts that server, in PEM format."""
    secret: SecretStr | None = None
    log: Literal["debug", "info", "warning", "error"] = "info"
    default_profile: Name | None = None
    profiles: dict[Name, ProfileSettings] = {}
    tools: tuple[Annotated[str, Field(pattern=r"^[\w.]+:\w+$")], ...] = ()
    """Tools for brains: functions as `module:function`."""
    games: dict[Name, Annotated[str, Field(pattern=r"^[\w.]+:\w+$")]] = {}
    """Games for meetings, by name: classes or objects as `module:name`."""
    mcp: dict[Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_\-]{0,40}$")], ServerSettings] = {}
    limits: Limits = Limits()
    _file: Path | None = PrivateAttr(default=None)

    @field_validator("limits", mode="wrap")
    @classmethod
    def _good(cls, given: Any, made: ValidatorFunctionWrapHandler) -> Any:
        try:
            return made(given)
        except BadLimit as error:
            raise _invalid(error.name, error.expected) from None

    @field_validator("trusted_proxies", "webhook_networks")
    @classmethod
    def _networks(cls, given: tuple[str, ...] | None) -> tuple[str, ...] | None:
        for address in given or ():
            try:
                ipaddress.ip_network(address, strict=False)
            except ValueError:
                raise ValueError("must be addresses or networks, such as 10.0.0.1 or 10.0.0.0/8") from None
        return given

    @field_validator("url")
    @classmethod
    def _origin(cls, given: str | None) -> str | None:
        parts = urlsplit(given or "")
        if given is None:
            return None
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.username:
            raise ValueError("must be a URL such as https://roost.example.com, without a path")
        return f"{parts.scheme}://{parts.netloc.lower()}"

    @model_validator(mode="after")
    def _complete(self) -> Settings:
        if self.tls_key is not None and self.tls_cert is None:
            raise _invalid("tls_cert", "must be given too, since there is a tls_key")
        if self.proxy_user_header is not None and not self.trusted_proxies:
            raise _invalid("trusted_proxies", "must be given too: only these may name the user in proxy_user_header")
        if self.cluster is not None and not (self.store or "").startswith(("postgresql:", "postgres:")):
            raise _invalid("store", "must be the PostgreSQL database of the cluster, such as postgresql://host/name")
        if self.cluster is not None and self.secret is None:
            raise _invalid("secret", "must be given in a cluster, the same on every node: it signs cookies and tokens")
        return self

    @field_validator("server")
    @classmethod
    def _plain_url(cls, given: str | None) -> str | None:
        parts = urlsplit(given.strip()) if given else None
        if parts is None:
            return None
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            raise ValueError("must be the URL of a server without a password, such as https://roost.example.org")
        return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"

    @field_validator("secret")
    @classmethod
    def _long(cls, secret: SecretStr | None) -> SecretStr | None:
        if secret is not None and len(secret.get_secret_value()) < 16:
            raise ValueError("must have at least 16 characters")
        return secret

    def servers(self) -> list[ServerConfig]:
        folder = str(self.folder)
        return [ServerConfig(name, folder=folder, **server.model_dump()) for name, server in self.mcp.items()]

    def hidden(self) -> list[str]:
        """Return the secrets that the settings refer to, whatever the names of their variables are."""
        servers = self.mcp.values()
        keys = {server.token for server in servers} | {profile.key for profile in self.profiles.values()}
        keys |= {self.oidc.client_secret} if self.oidc else set()
        given = {name for server in servers for name in server.environment}
        found = {name: value for name, value in os.environ.items() if name in keys | given}
        own = [self.secret.get_secret_value()] if self.secret else []
        own += passwords_in(self.store or "")
        own += [one for url in (self.cluster.nats if self.cluster else ()) for one in passwords_in(url)]
        return own + [value for name, value in found.items() if name in keys or not is_plain(value)]

    def client_secret(self) -> str | None:
        """Return the secret for the identity provider. Raise Invalid if its variable is not set."""
        if self.oidc is None or self.oidc.client_secret is None:
            return None
        if not (secret := os.environ.get(self.oidc.client_secret)):
            name = self.oidc.client_secret
            raise Invalid(f"oidc.client_secret names the variable {name}, which is not set: add it to secrets.toml")
        return secret

    def profile_list(self) -> list[Profile]:
        found = []
        for name, profile in self.profiles.items():
            values = profile.model_dump()
            if profile.agent and ":" not in profile.agent:  # a folder
                values["agent"] = str(self.folder / profile.agent)
            found.append(Profile(name, **values))
        return found

    @property
    def folder(self) -> Path:
        """Return the folder of the file, or the working directory: modules of brains are found there."""
        return (self._file.parent if self._file else Path()).absolute()

    @property
    def allowed_networks(self) -> tuple[str, ...]:
        """Return the networks that webhooks may reach. Those of a server for others do not reach its own machine."""
        if self.webhook_networks is not None:
            return self.webhook_networks
        is_shared = self.is_exposed or self.hosts or self.proxies or self.proxy_user_header or self.url or self.oidc
        return () if is_shared else LOOPBACK

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    @property
    def is_exposed(self) -> bool:
        """Return whether other machines can reach this server."""
        return self.behind_proxy or not self.is_loopback

    @property
    def proxies(self) -> tuple[str, ...]:
        """Return the trusted proxies; behind a proxy these are by default the programs on this machine."""
        return self.trusted_proxies or (("127.0.0.1", "::1") if self.behind_proxy else ())

    @property
    def public_hosts(self) -> tuple[str, ...]:
        """Return the names by which browsers call this server."""
        named = urlsplit(self.url).hostname if self.url else None
        return (self.host, *self.hosts, *([named] if named else []))

    @property
    def tls_files(self) -> tuple[Path, Path] | None:
        """Return the files of the certificate and of its key."""
        if self.tls_cert is None:
            return None
        return self.folder / self.tls_cert, self.folder / (self.tls_key or self.tls_cert)


def _invalid(key: str, told: str) -> PydanticCustomError:
    return PydanticCustomError("limit", "{told}", {"key": key, "told": told})


def config_path(named: str | Path | None = None) -> Path | None:
    """Return the file to read: the named one, or ROOST_CONFIG, or ./roost.toml if it exists."""
    chosen = named or os.environ.get("ROOST_CONFIG")
    if chosen:
        return Path(chosen)
    return Path(FILE) if Path(FILE).exists() else None


def load(path: str | Path | None = None, environ: Mapping[str, str] | None = None, **options: Any) -> Settings:
    """Read the file and the variables; `options` (of the command line) override both."""
    file = config_path(path)
    text = _text(file) if file else ""
    values = _parsed(text, file)
    names = dict(_variables(os.environ if environ is None else environ))
    for keys, (_, value) in names.items():
        _put(values, keys, value)
    for key, value in options.items():
        if value is not None:
            values[key] = value
    _refuse_unknown(values, (), text, file, names)
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise Invalid("\n".join(sentence(detail, text, file, names) for detail in details)) from None
    settings._file = file
    return settings


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise Invalid(f"cannot read the settings {str(file)!r}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Invalid(f"{file}, line {line}: this is not UTF-8 text: save the file as UTF-8") from None


def _parsed(text: str, file: Path | None) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).rpartition(" (at ")
        last = len(text.rstrip().splitlines())
        place = where.rstrip(")") if where.startswith("line") else f"line {last}"
        raise Invalid(f"{file}, {place}: this is not valid TOML: {what or error}") from None


def _variables(environ: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], tuple[str, Any]]]:
    """Yield the settings among the variables as (path, (variable, value)); ignore unknown ones."""
    for name in sorted(environ):
        keys = tuple(name.removeprefix(PREFIX).lower().split("__"))
        if name.startswith(PREFIX) and environ[name] and keys[0] in Settings.model_fields:
            value: Any = environ[name].split(",") if keys in LISTS else environ[name]
            yield keys, (name, value)


def _put(values: dict[str, Any], keys: tuple[str, ...], value: Any) -> None:
    for key in keys[:-1]:
        inner = values.setdefault(key, {})
        if not isinstance(inner, dict):
            return
        values = inner
    values[keys[-1]] = value


def _refuse_unknown(
    values: Mapping[str, Any], at: tuple[str, ...], text: str, file: Path | None, names: Mapping[Any, Any]
) -> None:
    known = _known(at)
    for key, value in values.items():
        path = (*at, key)
        if known is not None and key not in known:
            raise Invalid(f"{place(path, text, file, names)}there is no setting {'.'.join(path)!r}: {hint(key, known)}")
        if isinstance(value, bool) and path[-1:] not in BOOLEANS:  # pydantic would accept it as 1 or 0
            raise Invalid(f"{place(path, text, file, names)}{'.'.join(path)} must not be {str(value).lower()}")
        if isinstance(value, dict):
            _refuse_unknown(value, path, text, file, names)


def _known(at: tuple[str, ...]) -> list[str] | None:
    match at:
        case ():
            return list(Settings.model_fields)
        case ("limits",):
            return [field.name for field in fields(Limits)]
        case ("oidc",):
            return list(OidcSettings.model_fields)
        case ("profiles", _):
            return list(ProfileSettings.model_fields)
        case ("mcp", _):
            return list(ServerSettings.model_fields)
    return None
