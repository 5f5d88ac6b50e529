"""Metrics of the operator (docs/operations.md). Labels are bounded: a reason, a code, or the name of an object."""

from ots_tunnel_operator.metrics.operator_metrics import OperatorMetrics

__all__ = ["OperatorMetrics"]
