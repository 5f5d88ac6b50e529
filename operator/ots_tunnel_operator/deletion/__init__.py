"""The end of an object: what its policy deletes, then its release."""
