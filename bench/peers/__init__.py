"""Peers, measured beside Roost: each does the same work with an instant agent, in an environment of its own."""
