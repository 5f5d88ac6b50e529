"""Manifests of the Kubernetes objects that a TablestoreTunnel owns, as pure functions of the object."""
