"""Awake agents: lanes, work, settling, loops."""
