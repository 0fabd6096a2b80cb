"""Facts about what happens, and metrics."""
