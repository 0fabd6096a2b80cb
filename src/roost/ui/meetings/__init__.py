"""Pages of meetings: the list, the form that calls one, and a meeting with its transcript and game."""
