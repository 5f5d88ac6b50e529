"""The snapshot of a table by Spark: its document, its splits and its record of progress."""
