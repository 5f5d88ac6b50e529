"""The view of `kubectl ott events`: what happened to an object and its children. Pure."""
