"""Tasks as services of a Docker Swarm."""
