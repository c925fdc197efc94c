"""What Swarm runs: nodes, services and their updates."""
