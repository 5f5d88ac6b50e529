"""How a query of Spark on a table is planned: options, columns, ranges of keys, and the pages of a split."""
