"""The worker: session, channels, pipelines and checkpoints of one client."""
