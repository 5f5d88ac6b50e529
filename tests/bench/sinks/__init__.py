"""What it costs to bring a tunnel's records out of the worker, beside workers that use the vendor's SDK.

Every run ends with a count of what arrived: a run that lost or repeated a record is no measurement.
"""
