"""What to run: files, command line, how to read the output. Pure."""
