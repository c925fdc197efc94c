"""Machines: from what is requested to an instance that has booted and joined."""
