"""A node of a cluster: its lease, the other nodes, and messages between them."""
