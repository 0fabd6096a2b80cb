"""Tools that are named in the settings as `module:function`."""

from __future__ import annotations

import importlib

from roost.errors import Invalid
from roost.ports import Tool, tool


def imported(name: str) -> Tool:
    """The tool of this name, or one that is made of the function; Invalid says what is wrong."""
    module, _, function = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), function, None)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise Invalid(f"the tool {name!r} cannot be loaded: {type(error).__name__}: {error}") from error
    if found is None:
        raise Invalid(f"the tool {name!r} cannot be loaded: {module!r} has no {function!r}")
    made = found if isinstance(found, Tool) else tool(found)
    made.parameters  # noqa: B018 — what is wrong with it is told now
    return made
