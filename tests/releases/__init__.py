"""What each release has stored, one file for each backend: later versions must read, update and delete it."""
