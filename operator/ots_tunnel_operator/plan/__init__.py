"""From a world to the actions that change it."""
