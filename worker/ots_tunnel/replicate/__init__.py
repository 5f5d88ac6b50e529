"""`ots-tunnel replicate`: a table copied by one command, with its existing rows and its changes up to an end time."""
