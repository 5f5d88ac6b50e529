"""The demo: a changing table, copied in one process."""
