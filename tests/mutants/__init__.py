"""The net, measured: planted defects, each applied alone to a copy of the tree, and who finds it.

A mutant is data: file, old text, new text, what it breaks, and the unit tests of its area. `python -m tests.mutants`
prints a table: whether the simulation finds it within some seconds of seeds, and whether the tests do.
"""
