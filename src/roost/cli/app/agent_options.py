"""Settings of an agent as options of `roost agents create` and `set`."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

from roost.cli.app.durations import duration, positive_duration
from roost.cli.app.options import parse_priority
from roost.cli.app.typer_ext import parse_choice, parse_count
from roost.core.agents.agent import Invitations, State

InState = Annotated[
    str | None,
    typer.Option(
        "--state",
        parser=parse_choice("the state", State),
        help="Only in this state: idle, active, sleeping, waiting or stopped.",
    ),
]


def _expiry(text: str) -> float:
    try:
        return math.inf if text == "never" else positive_duration(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}, or never") from None


def _duration(*names: str, help: str, parser: Callable[[str], float] = duration) -> Any:
    return Annotated[float | None, typer.Option(*names, metavar="DURATION", parser=parser, help=help)]


SETTINGS: dict[str, Any] = {
    "profile": Annotated[
        str | None, typer.Option("--profile", help="Profile of its brain (default: the default profile).")
    ],
    "max_concurrent_tasks": Annotated[
        int | None,
        typer.Option(
            "--max-concurrent-tasks",
            metavar="N",
            parser=parse_count(1, 1000),
            help="Number of tasks it runs at the same time (1).",
        ),
    ],
    "check_mail_interval": _duration(
        "--check-mail-interval", help="How often it checks for mail that does not wake it (30s)."
    ),
    "wake_on_priority": Annotated[
        str | None,
        typer.Option(
            "--wake-on-priority",
            metavar="PRIORITY",
            parser=parse_priority,
            help="Lowest mail priority that wakes it (normal).",
        ),
    ],
    "subscriptions": Annotated[
        list[str] | None,
        typer.Option("--subscribe", metavar="EVENT", help="Events it receives, such as alerts.*; can be repeated."),
    ],
    "groups": Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME", help="Broadcast group it belongs to; can be repeated."),
    ],
    "inbox_limit": Annotated[
        int | None,
        typer.Option(
            "--inbox-limit",
            metavar="N",
            parser=parse_count(1, 10_000_000),
            help="Maximum number of items in its inbox (10000).",
        ),
    ],
    "max_attempts": Annotated[
        int | None,
        typer.Option(
            "--max-attempts",
            metavar="N",
            parser=parse_count(1, 1000),
            help="Number of attempts before work becomes a dead letter (3).",
        ),
    ],
    "retry_delay": _duration("--retry-delay", help="Delay before the first retry (1s)."),
    "task_expiry": _duration(
        "--task-expiry", help="Time after which a waiting task expires, or never (never).", parser=_expiry
    ),
    "idle_timeout": _duration("--idle-timeout", help="Time it stays loaded when idle (60s)."),
    "shared": Annotated[
        bool | None,
        typer.Option("--shared/--not-shared", help="Allow other users to write to it.", show_default=False),
    ],
    "invitations": Annotated[
        str | None,
        typer.Option(
            "--invitations",
            metavar="WHAT",
            parser=parse_choice("invitations", Invitations),
            help="Meeting invitations: accept, decline, or ask its brain (accept).",
        ),
    ],
    "description": Annotated[str | None, typer.Option("--description", help="Description of its purpose.")],
}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Add an option for each setting to a command, which receives the given ones as `settings`."""
    own = [one for one in inspect.signature(command, eval_str=True).parameters.values() if one.name != "settings"]
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=None, annotation=option) for name, option in SETTINGS.items()]
    first, rest = own[:1], own[1:]
    parameters = [*first, *more, *(one.replace(kind=kind) for one in rest)]

    @functools.wraps(command)
    def run(**options: Any) -> None:
        given = {name: options.pop(name) for name in SETTINGS}
        command(settings={name: _value(value) for name, value in given.items() if value is not None}, **options)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def _value(given: Any) -> Any:
    if isinstance(given, list):
        return [one for one in given if one]  # `--subscribe ""` and `--group ""` mean none
    return None if given == math.inf else given
