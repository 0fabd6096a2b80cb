"""The settings of an agent as options of a command: one for each, the same wherever they are given."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Annotated, Any

import typer

from roost.cli.commands import choice, count
from roost.cli.options import urgency
from roost.cli.tables import duration, some_time
from roost.core.agents import Invitations


def _expiry(text: str) -> float:
    try:
        return math.inf if text == "never" else some_time(text)
    except typer.BadParameter as error:
        raise typer.BadParameter(f"{error.message}, or never") from None


def _duration(*names: str, help: str, parser: Callable[[str], float] = duration) -> Any:
    return Annotated[float | None, typer.Option(*names, metavar="DURATION", parser=parser, help=help)]


SETTINGS: dict[str, Any] = {
    "profile": Annotated[str | None, typer.Option("--profile", help="How it thinks; else the default profile.")],
    "max_concurrent_tasks": Annotated[
        int | None,
        typer.Option(
            "--max-concurrent-tasks", metavar="N", parser=count(1, 1000), help="How many tasks it does at once (1)."
        ),
    ],
    "check_mail_interval": _duration(
        "--check-mail-interval", help="How often it looks at mail that does not wake it (30s)."
    ),
    "wake_on_priority": Annotated[
        str | None,
        typer.Option(
            "--wake-on-priority", metavar="PRIORITY", parser=urgency, help="Mail from here on wakes it (normal)."
        ),
    ],
    "subscriptions": Annotated[
        list[str] | None,
        typer.Option("--subscribe", metavar="EVENT", help="Events it hears, such as alerts.*; may be given again."),
    ],
    "groups": Annotated[
        list[str] | None,
        typer.Option("--group", metavar="NAME", help="A group by which broadcasts reach it; may be given again."),
    ],
    "inbox_limit": Annotated[
        int | None,
        typer.Option(
            "--inbox-limit", metavar="N", parser=count(1, 10_000_000), help="How much its inbox holds (10000)."
        ),
    ],
    "max_attempts": Annotated[
        int | None,
        typer.Option("--max-attempts", metavar="N", parser=count(1, 1000), help="How often something is tried (3)."),
    ],
    "retry_delay": _duration("--retry-delay", help="How long to wait before the second try (1s)."),
    "task_expiry": _duration("--task-expiry", help="How long a task may wait, or never (never).", parser=_expiry),
    "idle_timeout": _duration("--idle-timeout", help="How long it stays at hand when idle (60s)."),
    "shared": Annotated[
        bool | None,
        typer.Option("--shared/--not-shared", help="Whether other users may write to it.", show_default=False),
    ],
    "invitations": Annotated[
        str | None,
        typer.Option(
            "--invitations",
            metavar="WHAT",
            parser=choice("invitations", Invitations),
            help="Of meetings: accept, decline, or ask its brain (accept).",
        ),
    ],
    "description": Annotated[str | None, typer.Option("--description", help="What it is for.")],
}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """The command with these options; what is given of them it gets as `settings`."""
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
        return [one for one in given if one]  # `--subscribe ""` and `--group ""` are for none
    return None if given == math.inf else given
