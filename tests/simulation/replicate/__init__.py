"""Stories of `ots-tunnel replicate`: users who start, stop and repeat the command, and what it must refuse."""
