"""Meetings: a log that every participant keeps, and what follows from it."""
