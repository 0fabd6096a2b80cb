"""Participants of a meeting: what they write, decide and are asked."""
