"""Models of providers through pydantic-ai; an extra. Slow to import, so it is loaded on a thread when needed."""

from roost.brains.llm.brain import Llm

__all__ = ["Llm"]
