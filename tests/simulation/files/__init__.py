"""Stories whose workers write files: a disk that fails, loses its power, or ends a process in the middle of a call."""
