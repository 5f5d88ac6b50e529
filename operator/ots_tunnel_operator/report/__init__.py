"""From a world to the status: conditions, figures and events."""
