"""Two tables compared: `ots-tunnel verify` and what `compare` is made of.

`comparison`, `keys`, `rows`, `expiry`, `sampling`, `checks`, `state` and `report` are pure; `slices` and `recheck` read
tables, `job` runs slices side by side, `state_file` and `display` write. Source: docs/architecture.md 4.5.
"""
