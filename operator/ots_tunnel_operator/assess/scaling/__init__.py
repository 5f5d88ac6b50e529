"""The autoscaler's view of a world: what it is given, what it decides, what the status keeps of it. Pure."""
