"""What one pass observed of one object, as immutable records."""
