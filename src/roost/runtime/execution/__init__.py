"""Execution of one brain over one turn, on a loop or a thread."""
