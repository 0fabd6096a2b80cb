"""Methods of talks."""
