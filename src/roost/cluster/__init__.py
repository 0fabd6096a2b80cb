"""Joining a cluster: the row of the node in the store, its lease, and its transport."""
