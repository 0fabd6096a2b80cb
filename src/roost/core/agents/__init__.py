"""Agents: configuration, states, wake conditions."""
