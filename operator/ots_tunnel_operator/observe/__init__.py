"""What one pass looks at: the tunnel, both sides, pods and their metrics."""
