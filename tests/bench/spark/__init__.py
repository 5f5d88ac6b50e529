"""What rows cost in Spark."""
