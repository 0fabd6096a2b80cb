"""View of a meeting: what a log says about participants, floor and game."""
