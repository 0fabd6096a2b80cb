"""Fields for all settings of an agent, with the problem of each beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import streamlit as st

from roost.core.agents.agent import AgentConfig, Invitations, Subscription, configured
from roost.core.values.priority import Priority
from roost.errors import Invalid
from roost.ui.agents.forms.durations import duration, formatted
from roost.ui.text import as_sentence, parsed_json

DEFAULT = "(default)"
NEVER = "never"


@dataclass(frozen=True, slots=True)
class ConfigField:
    """Setting on a form: `show` returns the value of the field, `read` the setting."""

    name: str
    label: str
    about: str
    draw: Callable[[ConfigField, str, Any], object]
    show: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


def _text(field: ConfigField, key: str, value: Any) -> object:
    return st.text_input(field.label, value, key=key, help=field.about)


def _area(field: ConfigField, key: str, value: Any) -> object:
    return st.text_area(field.label, value, key=key, help=field.about, height=90)


def _number(field: ConfigField, key: str, value: Any) -> object:
    return st.number_input(field.label, None, None, value, step=1, key=key, help=field.about)


def _flag(field: ConfigField, key: str, value: Any) -> object:
    return st.checkbox(field.label, value, key=key, help=field.about)


def _choice(options: Sequence[str]) -> Callable[[ConfigField, str, Any], object]:
    def draw(field: ConfigField, key: str, value: Any) -> object:
        return st.selectbox(field.label, options, options.index(value), key=key, help=field.about)

    return draw


def _seconds(name: str, label: str, about: str) -> ConfigField:
    return ConfigField(name, label, about, _text, formatted_or_zero, lambda text: duration(text, label))


def formatted_or_zero(seconds: float) -> str:
    return formatted(seconds) or "0s"


def _subscription_lines(subscriptions: Sequence[Subscription]) -> str:
    return "\n".join(one.pattern + (f" {one.fields_json()}" if one.fields else "") for one in subscriptions)


def _subscriptions(text: str) -> list[Any]:
    return [_subscription(line.strip()) for line in text.splitlines() if line.strip()]


def _subscription(line: str) -> Any:
    pattern, _, fields = line.partition(" ")
    if not fields.strip():
        return pattern
    problem = f'the fields of {pattern!r:.80} must be JSON, such as {{"host": "a"}}'
    return {"event": pattern, "fields": parsed_json(fields, problem)}


def _names(text: str) -> list[str]:
    return [name for name in re.split(r"[,\n]\s*", text.strip()) if name]


FIELDS = (
    ConfigField("description", "Description", "For people; up to 10,000 characters", _area),
    ConfigField("max_concurrent_tasks", "Tasks at once", "From 1 to 1,000", _number),
    ConfigField(
        "subscriptions",
        "Events that it receives",
        'One per line: alerts.* or alerts.* {"host": "a"}; up to 100',
        _area,
        _subscription_lines,
        _subscriptions,
    ),
    ConfigField(
        "groups", "Groups", "Names with commas between them; broadcasts can address them", _text, ", ".join, _names
    ),
    ConfigField(
        "wake_on_priority",
        "Mail that wakes it at once",
        "This priority or above",
        _choice([str(one) for one in Priority]),
    ),
    _seconds("check_mail_interval", "Looks for other mail every", "Up to a year: 30s, 5m, 1h"),
    ConfigField("inbox_limit", "Most entries in its inbox", "From 1 to 10,000,000", _number),
    ConfigField("max_attempts", "Attempts", "From 1 to 1,000; then the work becomes a dead letter", _number),
    _seconds("retry_delay", "Delay before the second attempt", "Later ones wait longer: 1s, 30s"),
    ConfigField(
        "task_expiry",
        "Tasks expire after",
        "How long a task may wait: 2h, 1d, or never",
        _text,
        lambda value: NEVER if value is None else formatted_or_zero(value),
        lambda text: None if text.strip() in ("", NEVER) else duration(text, "the expiry of tasks"),
    ),
    _seconds("idle_timeout", "Keeps its thread without work for", "Up to a year: 60s"),
    ConfigField(
        "invitations",
        "Invitations to meetings",
        "With ask, its brain decides",
        _choice([str(one) for one in Invitations]),
    ),
    ConfigField("shared", "Other users may write to it and talk with it", "As agent:YOU/NAME", _flag),
)


def profile(prefix: str, current: str, known: Sequence[str], errors: Mapping[str, str]) -> None:
    """Draw the choice of a profile. One that is unknown here can stay, but a chosen one not become the default."""
    options = [*known] if current else [DEFAULT, *known]
    if current and current not in options:
        options.append(current)
    st.selectbox("Profile", options, options.index(current or DEFAULT), key=f"{prefix}_profile", help="How it thinks")
    problem_of("profile", errors)


def draw(prefix: str, config: AgentConfig, errors: Mapping[str, str], names: Sequence[str] = ()) -> None:
    """Draw the fields of these settings, or of all, in two columns; each with its problem below it."""
    fields = [field for field in FIELDS if not names or field.name in names]
    columns = st.columns(2) if len(fields) > 1 else [st.container()]
    half = -(-len(fields) // len(columns))
    for number, field in enumerate(fields):
        with columns[number // half]:
            field.draw(field, f"{prefix}_{field.name}", field.show(getattr(config, field.name)))
            problem_of(field.name, errors)


def problem_of(name: str, errors: Mapping[str, str]) -> None:
    if problem := errors.get(name):
        st.markdown(f":red[{as_sentence(problem)}]")


def read(prefix: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the settings of a form, and the problem of each that cannot be used."""
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    chosen = st.session_state.get(f"{prefix}_profile", DEFAULT)
    if chosen != DEFAULT:
        values["profile"] = chosen
    for field in FIELDS:
        key = f"{prefix}_{field.name}"
        if key not in st.session_state:
            continue
        try:
            values[field.name] = field.read(st.session_state[key])
            configured(AgentConfig(), {field.name: values[field.name]})
        except Invalid as error:
            errors[field.name] = str(error)
    return values, errors
