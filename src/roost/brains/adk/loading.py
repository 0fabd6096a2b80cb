"""From what a profile names to an ADK app: an agent, an app, or a folder as `adk` knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.apps import App
from google.adk.workflow import BaseNode

from roost.errors import BrainFailed


def in_folder(name: str) -> Any:
    """What `adk run` would run there: the `app` or the `root_agent` of agent.py, of the package, or of a YAML file."""
    from google.adk.cli.utils.agent_loader import AgentLoader  # slow, and of use here alone

    folder = Path(name)
    if not folder.is_dir():
        raise BrainFailed(
            f"the agent {name!r:.200} is no folder: name one that has an agent.py, or module:root_agent", kind="brain"
        )
    try:
        return AgentLoader(str(folder.parent)).load_agent(folder.name)
    except (Exception, SystemExit) as error:  # whatever a module does when it is imported
        raise BrainFailed(f"the agent in {name!r:.200} cannot be loaded: {error}", kind="brain") from error


def app_of(found: Any, name: str = "") -> App:
    """The app that it is, or one made of the agent."""
    if isinstance(found, App):
        return found
    if not isinstance(found, BaseAgent | BaseNode):
        raise BrainFailed(
            f"{name or 'what was given'!r:.200} is no agent of the ADK, but {type(found).__name__}:"
            " name a root_agent, or an App",
            kind="brain",
        )
    return App(name=found.name, root_agent=found)
