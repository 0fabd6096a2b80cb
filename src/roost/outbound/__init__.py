"""Requests that Roost sends to URLs of users."""
