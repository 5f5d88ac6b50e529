"""The driver program of a query that follows a tunnel into files."""
