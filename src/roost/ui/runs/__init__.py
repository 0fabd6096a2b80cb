"""Finished runs: a list, the steps of one, and replays."""
