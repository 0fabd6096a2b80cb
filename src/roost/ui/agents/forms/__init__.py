"""Forms that act on an agent, each in a dialog, and the settings of agents."""
