"""Machines of Amazon EC2; their tasks are services of a Docker Swarm."""
