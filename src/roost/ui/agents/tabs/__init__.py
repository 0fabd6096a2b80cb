"""Sections of the page of one agent."""
