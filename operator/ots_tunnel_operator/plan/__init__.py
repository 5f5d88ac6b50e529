"""From an assessed world to the actions of a pass. Pure."""
