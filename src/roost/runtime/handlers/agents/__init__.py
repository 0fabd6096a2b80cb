"""Methods of agents."""
