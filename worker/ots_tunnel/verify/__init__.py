"""Comparison of two tables (docs/architecture.md 4.5): `ots-tunnel verify`, and `compare_tables` for tests and demo.

`comparison`, `rows`, `checks`, `state`, `state_document`, `meter` and `report` are pure; `scan`, `slices` and `recheck`
read tables; `job` compares slices in parallel; `verification` is one run with its state file.
"""
