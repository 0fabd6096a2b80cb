"""Limits: what an agent, a user and the process may use, and what was used."""
