"""Extensions of Typer: shorter usage lines, and parsers with clear messages for invalid values."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from roost.cli.app.server_choice import with_server
from roost.core.values import checks
from roost.core.values.checks import shown
from roost.errors import Invalid

T = TypeVar("T")
_TYPE = re.compile(r" <[^>]*>$")
_REQUIRED = re.compile(r"\s*\[required\]$")


class Command(TyperCommand):
    """Command whose usage line shows `AGENT` for a required argument and `[QUERY]` for an optional one."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        given = [one for one in self.get_params(ctx) if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(_name(one) if one.required else f"[{_name(one)}]" for one in given)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        for kind, title in (("argument", "Arguments"), ("option", "Options")):
            given = [one for one in self.get_params(ctx) if one.param_type_name == kind]
            if rows := [_row(one, record) for one in given if (record := one.get_help_record(ctx))]:
                with formatter.section(title):
                    formatter.write_dl(rows)


def _row(given: Any, record: tuple[str, str]) -> tuple[str, str]:
    """Return the help row of a parameter, without its type and without `[required]`, which the usage line shows."""
    named, about = record
    if given.param_type_name == "argument":
        return _name(given), _REQUIRED.sub("", about)
    return _TYPE.sub(f" {given.opts[0].lstrip('-').upper()}", named), about


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


class CommandGroup(typer.Typer):
    """Command group whose commands are of class Command, and can use another server unless they are `local`."""

    def command(self, *args: Any, local: bool = False, **options: Any) -> Callable[[Any], Any]:
        add = super().command(*args, **{"cls": Command, **options})

        def added(command: Callable[..., Any]) -> Callable[..., Any]:
            add(with_server(command, is_local=local))
            return command

        return added


def parse_count(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """Return a parser of whole numbers in this range."""
    allowed = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(text: str | int) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least or (most is not None and number > most):
            raise typer.BadParameter(f"{shown(str(text))} is not a valid number: use a whole number {allowed}")
        return number

    return read


def parse_with(check: Callable[[str], T]) -> Callable[[str], T]:
    """Return a parser that reports Invalid errors of `check` as wrong usage."""

    def read(text: str) -> T:
        try:
            return check(text)
        except Invalid as error:
            raise typer.BadParameter(str(error)) from None

    return read


def parse_choice(what: str, kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """Return a parser of the values of an enum."""
    return parse_with(lambda text: checks.choice(text, what, kind))


def parse_share(text: str | float) -> float:
    """Parse a share: a number above 0 and up to 1."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise typer.BadParameter(
            f"{shown(str(text))} is not a valid share: use a number above 0 and up to 1, such as 0.5"
        )
    return number
