"""A graph of nodes and weighted edges, as an SVG."""
