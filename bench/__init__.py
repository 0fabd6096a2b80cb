"""Benchmarks: one JSON line a figure, on a real SQLite file with synchronous=FULL."""
