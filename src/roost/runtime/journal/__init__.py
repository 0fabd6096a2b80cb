"""Recorded steps of a turn: journal, steps, tool calls, approvals."""
