"""Protocols between the packages of the runtime."""
