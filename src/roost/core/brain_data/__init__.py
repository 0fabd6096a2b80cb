"""Memory of agents and brains: memories, state, brain context, artifacts."""
