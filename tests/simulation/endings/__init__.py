"""What ends a story of the region, after everything else."""
