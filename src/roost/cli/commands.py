"""Commands as people read of them: plain usage lines, and our own words for what cannot be meant."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand

from roost.core import checks
from roost.core.checks import shown
from roost.errors import Invalid

T = TypeVar("T")
_TYPE = re.compile(r" <[^>]*>$")
_REQUIRED = re.compile(r"\s*\[required\]$")


class Command(TyperCommand):
    """One whose usage line has `AGENT` for what must be given, and `[QUERY]` for what may be."""

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
    """As it is typed: what is to be typed has a name and no type, and the usage line tells what must be given."""
    named, about = record
    if given.param_type_name == "argument":
        return _name(given), _REQUIRED.sub("", about)
    return _TYPE.sub(f" {given.opts[0].lstrip('-').upper()}", named), about


def _name(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


class Commands(typer.Typer):
    """A group whose commands are such."""

    def command(self, *args: Any, **options: Any) -> Callable[[Any], Any]:
        return super().command(*args, **{"cls": Command, **options})


def count(least: int, most: int | None = None) -> Callable[[str | int], int]:
    """Reads a whole number between these."""
    allowed = f"from {least} to {most}" if most is not None else f"of at least {least}"

    def read(text: str | int) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if number is None or number < least or (most is not None and number > most):
            raise typer.BadParameter(f"{shown(str(text))} is not allowed: give a whole number {allowed}")
        return number

    return read


def checked(check: Callable[[str], T]) -> Callable[[str], T]:
    """Reads what the check lets through; what it refuses is told as a wrong use of the command."""

    def read(text: str) -> T:
        try:
            return check(text)
        except Invalid as error:
            raise typer.BadParameter(str(error)) from None

    return read


def choice(what: str, kind: type[StrEnum]) -> Callable[[str], StrEnum]:
    """Reads one of these."""
    return checked(lambda text: checks.choice(text, what, kind))


def share(text: str | float) -> float:
    """Reads a part of a whole."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 1:
        raise typer.BadParameter(f"{shown(str(text))} is no share: give a number above 0 and up to 1, such as 0.5")
    return number
