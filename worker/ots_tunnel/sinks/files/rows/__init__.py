"""What the rows of a Parquet file are: the change log, or a column for each declared attribute."""
