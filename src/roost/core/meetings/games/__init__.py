"""Games that can be played in a meeting."""
