"""Limits of what clients may use: connections, request bodies, request rates, concurrent requests."""
