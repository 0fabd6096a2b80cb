"""Local models in GGUF files; needs an extra."""

from roost.brains.gguf.brain import Gguf

__all__ = ["Gguf"]
