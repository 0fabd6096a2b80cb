"""Replays of recorded runs."""
