"""A query of Spark that follows a tunnel: its document and the record of its progress, free of Spark."""
