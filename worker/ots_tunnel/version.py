"""The version of the package; `pyproject.toml` has the same, a test compares them."""

__version__ = "0.1.0"
