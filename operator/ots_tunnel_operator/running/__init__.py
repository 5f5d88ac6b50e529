"""The operator's process from its start to its end: its logs, its leadership, kopf, and its exit code."""
