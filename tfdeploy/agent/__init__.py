"""What travels into the tasks, as one zip application: standard library only, Python >= 3.8, nothing else of ours."""
