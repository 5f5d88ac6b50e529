"""The view of `kubectl ott why` and the four answers that it is made of. Pure."""
