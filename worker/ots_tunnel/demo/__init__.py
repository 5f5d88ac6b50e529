"""The demo: a changing table, copied in one process.

The only package of `ots_tunnel` that imports the emulator.
"""
