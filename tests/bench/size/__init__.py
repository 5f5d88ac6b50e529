"""Where the bytes of our images are, by package, library and program."""
