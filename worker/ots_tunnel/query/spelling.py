"""Names of columns as Spark compares them: two that differ in case alone are one column to it. Pure."""

from __future__ import annotations


def spelled(name: str) -> str:
    """Equal for names that are one to Spark, which compares letter by letter (`String.equalsIgnoreCase` of Java).

    Python's `lower` keeps letters apart that Java takes for one, such as the two i of Turkish.
    """
    return "".join((upper if len(upper := each.upper()) == 1 else each).lower()[0] for each in name)
