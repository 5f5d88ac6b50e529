"""State that survives a restart: recording, restoring, the database. Its modules are loaded with a data directory."""


class DataError(Exception):
    """The data directory cannot be used; the text has the reason in one line."""
