"""Loading of an ADK app by the name in a profile: an agent, an app, or a folder as `adk` uses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.workflow import BaseNode

from roost.errors import BrainFailed


def variables_of(folder: str) -> dict[str, str]:
    """Return the variables of the `.env` that the ADK will load for a folder: there, or in one above it."""
    from dotenv import dotenv_values  # comes with the ADK

    here = Path(folder).absolute()
    file = next((found for parent in (here, *here.parents) if (found := parent / ".env").is_file()), None)
    return {name: value for name, value in dotenv_values(file).items() if value} if file is not None else {}


def in_folder(name: str) -> Any:
    """Return what `adk run` would run: the `app` or `root_agent` of agent.py, of the package, or of a YAML file."""
    from google.adk.cli.utils.agent_loader import AgentLoader  # slow to import, and only used here

    folder = Path(name)
    if not folder.is_dir():
        raise BrainFailed(
            f"the agent {name!r:.200} is not a folder: name one that has an agent.py, or module:root_agent",
            kind="brain",
        )
    try:
        return AgentLoader(str(folder.parent)).load_agent(folder.name)
    except (Exception, SystemExit) as error:  # the import may raise anything
        raise BrainFailed(f"the agent in {name!r:.200} cannot be loaded: {error}", kind="brain") from error


def app_of(found: Any, name: str = "") -> App:
    """Return the app, or a new one for the agent."""
    if isinstance(found, App):
        return found
    if not isinstance(found, BaseAgent | BaseNode):
        raise BrainFailed(
            f"{name or 'the given object'!r:.200} is not an agent of the ADK, but {type(found).__name__}:"
            " name a root_agent or an App",
            kind="brain",
        )
    return App(name=found.name, root_agent=found)
