"""What the end-to-end tests share: the daemon, the wire, matrices, metrics, load."""
