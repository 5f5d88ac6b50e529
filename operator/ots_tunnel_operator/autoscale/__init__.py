"""How many workers the load needs: figures of one look and what is remembered -> a decision. Pure."""
