"""Nodes of a cluster."""
