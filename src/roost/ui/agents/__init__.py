"""Pages of agents: all of them, and one with everything about it."""
