"""Roost: a home for long-lived agents."""

__version__ = "0.1.0"
