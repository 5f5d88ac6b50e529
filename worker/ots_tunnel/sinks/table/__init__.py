"""The sink that copies into another table."""
