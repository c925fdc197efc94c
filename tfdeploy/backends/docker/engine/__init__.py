"""Connections to Docker Engines: by socket, TLS and SSH, and calls through them."""
