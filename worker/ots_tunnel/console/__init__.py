"""What a person reads in a terminal: explanations, progress, exit codes."""
