"""What operator and driver share about a snapshot: its document, its splits and its progress record."""
