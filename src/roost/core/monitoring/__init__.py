"""Monitoring: facts, metrics and health."""
