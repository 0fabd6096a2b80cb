"""Models of providers, by pydantic-ai; an extra. It takes long to load: on a thread of its own, when it is wanted."""

from roost.brains.llm.brain import llm
from roost.brains.llm.providers import prepare

__all__ = ["llm", "prepare"]
