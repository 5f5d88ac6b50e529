"""Tables of a lake in their formats: Delta and Iceberg.

`statements` are Spark's SQL with names and texts in quotes. `lake_table` is what a change log and a mirror need of a
table, `delta` and `iceberg` how each format does it; `places` is what a
program names a table with.
"""
