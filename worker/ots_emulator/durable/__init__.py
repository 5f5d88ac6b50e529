"""State that survives a restart: recording, restoring and the database."""
