"""Terminal output that commands share: explained errors, progress, retry notes, exit codes."""
