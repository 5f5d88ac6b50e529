"""Fleets whose load changes, while the operator, an HPA or nobody chooses the number of workers.

`python -m tests.simulation.scaling` prints what each of them costs, and how late it is.
"""
