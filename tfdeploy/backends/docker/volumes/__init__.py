"""Volumes: their names, their sizes, and their removal."""
