"""Fleets of which no worker runs while nothing is to be read; the operator looks itself."""
