"""What starts programs: the launcher in each task, and what it prepares for a program."""
