"""Brain `guide`: a script for users without a model, which explains Roost and answers from its docs."""

from roost.brains.guide.brain import guide, guided

__all__ = ["guide", "guided"]
