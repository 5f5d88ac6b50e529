"""The Kubernetes API: client, kinds, drift and the leader lease."""
