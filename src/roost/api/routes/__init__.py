"""Routes of the API: talks, the other namespaces, streams, metrics."""
