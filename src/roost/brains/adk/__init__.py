"""Brain `adk`: an agent written with Google's Agent Development Kit, run by the ADK's own Runner."""

from __future__ import annotations

from roost.brains.adk.brain import Adk
from roost.brains.adk.loading import in_folder, variables_of

__all__ = ["Adk", "in_folder", "variables_of"]
