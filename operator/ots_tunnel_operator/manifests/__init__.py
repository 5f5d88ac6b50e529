"""From an object to the Kubernetes objects that it owns."""
