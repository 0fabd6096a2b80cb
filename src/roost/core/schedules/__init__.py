"""Schedules: rules for when a task is due."""
