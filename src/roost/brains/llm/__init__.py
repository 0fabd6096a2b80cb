"""Models of providers, by pydantic-ai; an extra. It takes long to load: on a thread of its own, when it is wanted."""

from roost.brains.llm.brain import Llm

__all__ = ["Llm"]
