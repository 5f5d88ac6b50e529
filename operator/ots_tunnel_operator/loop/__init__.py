"""The loop of one object: its passes."""
