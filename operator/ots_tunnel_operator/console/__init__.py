"""The console: one page for people, read only, from what the process has in memory (docs/operations.md).

A request costs no call of the API server, of Tablestore or of a worker: it shows the objects as the watch has them, and
what their loops keep of the last pass. Nothing here changes anything.
"""
