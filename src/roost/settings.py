"""Settings: `roost.toml` and `ROOST_…` variables, read once, then frozen.

Errors name the key, its line in the file (or its variable), and the expected value.
"""

from __future__ import annotations

import difflib
import ipaddress
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Literal

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
from pydantic_core import ErrorDetails, PydanticCustomError

from roost.core.limits.limits import BadLimit, Limits
from roost.core.values.checks import NAME_LENGTH
from roost.core.values.secrets import is_plain, passwords_in
from roost.errors import Invalid
from roost.ports import Profile
from roost.ports.servers import ServerConfig
from roost.ports.tools import LIMIT, OUTPUT

FILE = "roost.toml"
PREFIX = "ROOST_"
OTHER_VARIABLES = {"ROOST_CONFIG", "ROOST_SECRETS", "ROOST_DEBUG", "ROOST_CHROMIUM", "ROOST_UI_PORT"}
"""Variables that are not settings and read elsewhere."""

LISTS = {"hosts", "trusted_proxies"}
"""Settings that are comma-separated lists in variables."""

_EXPECTED = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "string_type": "must be text in quotes",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern": "must be a built-in brain, or module:function",
    "path": "must be the path of a folder in quotes",
    "tuple": "must be a list",
    "dict": "must be a table",
    "model": "must be a table",
    "dataclass": "must be a table",
    "missing": "is missing",
}
"""Messages for users, by the prefix of pydantic's error type; pydantic's own messages are for programmers."""

_PATTERNS = {
    "base_url": "must be a URL that begins with http:// or https://",
    "key": "must be the name of a variable, such as OPENAI_API_KEY: the key itself belongs into secrets.toml",
    "url": "must be a URL that begins with http:// or https://",
    "token": "must be the name of a variable: the token itself belongs into secrets.toml",
}
"""Messages for strings of a certain format, by the name of the setting."""

Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


Pattern = Annotated[str, Field(pattern=r"^[\w.\-*]{1,200}$")]


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
            expected = 'must be "provider:name", such as "openai:gpt-5-mini"'
            raise PydanticCustomError("limit", "{told}", {"key": "model", "told": expected})
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
    data: Path | None = None
    user: Name | None = None
    """User of the command line; by default the name of the account."""
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
            details = {"key": error.name, "told": error.expected}
            raise PydanticCustomError("limit", "{told}", details) from None

    @field_validator("trusted_proxies")
    @classmethod
    def _networks(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        for address in given:
            try:
                ipaddress.ip_network(address, strict=False)
            except ValueError:
                raise ValueError("must be addresses or networks, such as 10.0.0.1 or 10.0.0.0/8") from None
        return given

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
        given = {name for server in servers for name in server.environment}
        found = {name: value for name, value in os.environ.items() if name in keys | given}
        own = [self.secret.get_secret_value()] if self.secret else []
        own += passwords_in(self.store or "")
        return own + [value for name, value in found.items() if name in keys or not is_plain(value)]

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
    def is_loopback(self) -> bool:
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False


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
        raise Invalid("\n".join(_sentence(detail, text, file, names) for detail in details)) from None
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
            value: Any = environ[name].split(",") if keys[0] in LISTS else environ[name]
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
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"use one of {', '.join(sorted(known))}"
            raise Invalid(f"{_place(path, text, file, names)}there is no setting {'.'.join(path)!r}: {hint}")
        if isinstance(value, bool):  # pydantic would accept it as 1 or 0, and no setting is a boolean
            raise Invalid(f"{_place(path, text, file, names)}{'.'.join(path)} must not be {str(value).lower()}")
        if isinstance(value, dict):
            _refuse_unknown(value, path, text, file, names)


def _known(at: tuple[str, ...]) -> list[str] | None:
    match at:
        case ():
            return list(Settings.model_fields)
        case ("limits",):
            return [field.name for field in fields(Limits)]
        case ("profiles", _):
            return list(ProfileSettings.model_fields)
        case ("mcp", _):
            return list(ServerSettings.model_fields)
    return None


def _sentence(detail: ErrorDetails, text: str, file: Path | None, names: Mapping[Any, Any]) -> str:
    path = tuple(str(part) for part in detail["loc"])
    if detail["type"] == "limit":
        path = (*path, detail["ctx"]["key"])
    silent = (
        path[:1] == ("secret",) or path[-1:] == ("key",) or detail["type"] in ("missing", "limit", "string_too_short")
    )
    given = "" if silent else f", not {detail['input']!r:.80}"
    return f"{_place(path, text, file, names)}{'.'.join(path)} {_expected(detail)}{given}"


def _expected(detail: ErrorDetails) -> str:
    if detail["type"] == "string_pattern_mismatch" and (expected := _PATTERNS.get(str(detail["loc"][-1]))):
        return expected
    if detail["type"] == "string_pattern_mismatch" and "tools" in detail["loc"]:
        return (
            "must be module:function" if detail["loc"][0] == "tools" else "must be a tool's name, or a pattern of them"
        )
    if detail["type"] == "string_pattern_mismatch" and detail["loc"][0] == "games":
        return "must be module:name, a class derived from roost.Game"
    for kind, expected in _EXPECTED.items():
        if detail["type"].startswith(kind):
            return expected.format(**detail.get("ctx", {}))
    what = detail["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    return what if what.startswith("must") else f"must be {what}"


def _place(path: tuple[str, ...], text: str, file: Path | None, names: Mapping[Any, Any]) -> str:
    """Return where a setting comes from: its variable, or its line."""
    for end in range(len(path), 0, -1):
        if path[:end] in names:
            return f"{names[path[:end]][0]}: "
    for end in range(len(path), 0, -1):
        line = line_of(text, path[:end])
        if line:
            return f"{file}, line {line}: "
    return ""


def line_of(text: str, path: tuple[str, ...]) -> int | None:
    """Return the line that sets a key: the first after which the parsed beginning of the file has it."""
    lines = text.splitlines()
    start = 1
    for end in range(1, len(lines) + 1):
        try:
            value: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue  # in the middle of a value of several lines
        if _has(value, path):
            return start
        start = end + 1
    return None


def _has(value: Any, path: tuple[str, ...]) -> bool:
    for key in path:
        if isinstance(value, list) and key.isdigit():
            return True
        if not isinstance(value, dict) or key not in value:
            return False
        value = value[key]
    return True
