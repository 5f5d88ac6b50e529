"""The admin port: its page and its JSON."""
