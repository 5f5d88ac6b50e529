"""What a row call does to single rows: checks, keys, filters, projections, pages and their cost."""
