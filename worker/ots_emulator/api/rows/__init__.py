"""Row calls below the level of requests: checks, keys, filters, projections, pages and their cost."""
