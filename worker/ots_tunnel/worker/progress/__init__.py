"""How far one channel is: pages that wait for their confirmation, figures, and the checkpoint."""
