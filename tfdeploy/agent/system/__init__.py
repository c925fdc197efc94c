"""What a process needs of its machine: files, locks, ports, signals, processes."""
