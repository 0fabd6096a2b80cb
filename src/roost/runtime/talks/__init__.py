"""Live talks: lanes, workers, runs and their answers."""
