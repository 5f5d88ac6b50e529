"""From world, assessment and plan to status and events."""
