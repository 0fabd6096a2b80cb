"""Pages of the monitor: figures over time, dead letters, events, who talks to whom, nodes and facts."""
