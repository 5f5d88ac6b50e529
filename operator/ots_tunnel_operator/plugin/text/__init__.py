"""Text for people: spans of time, tables and bars that fit the screen. Pure."""
