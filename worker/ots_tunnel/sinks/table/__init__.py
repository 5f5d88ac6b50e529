"""A table as the sink, and the writers that Spark uses too."""
