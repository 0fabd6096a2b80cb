"""Tour: a button that builds a small roost, links to what it has made, and a button that removes it."""
